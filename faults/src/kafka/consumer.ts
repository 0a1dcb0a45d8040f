/**
 * A consumer process: `consume` on the transport under test, with a real effect and a separate
 * history.
 */
import { kafka, type KafkaTransport } from '@redrive/kafka'
import { type Consumer, consume } from '@redrive/runtime'
import { tamper } from '../harness/clock.ts'
import { dieAt, live, RULES } from '../harness/consumer.ts'
import { countRun, inboxOf, openDatabase } from '../harness/effects.ts'
import { handlerOf } from '../harness/handler.ts'
import { openHistory } from '../evidence/history.ts'
import type { KafkaConsumerOptions } from './consumer-options.ts'
import { dyingAt } from './failpoints.ts'
import { breakingCopies } from './produce-faults.ts'
import { nameOfRequest, type OnRequest, type Request, Wire } from './requests.ts'
import { groupOf } from './topology.ts'
import { readAssignment, readCommit, readSync } from './wire-format.ts'

const options = JSON.parse(process.argv[2] ?? '') as KafkaConsumerOptions
const { name, run, brokers, policy, failpoint, produceFaults } = options
if (options.clock !== undefined) tamper(options.clock)
const history = openHistory(options.folder, name)
// This scenario does not stop the database, so commits need not wait for the disk.
const pool = openDatabase(options.databaseUrl, { isInHurry: true })
const die = (where: string) => dieAt(history, where)

const asIs: OnRequest = (request) => request.send()

const breaking =
  produceFaults === undefined
    ? asIs
    : breakingCopies(produceFaults, options.confirmMs, (fault) =>
        history.write({ what: 'event', type: 'produce_fault', note: fault }),
      )

const dying = failpoint === undefined ? breaking : dyingAt(failpoint, die)

const unnamed = new Set<number>()

/** Records commits to the group and their responses, and the assignments of the member that consumes this topic. */
function watched(request: Request, topic: string): void {
  const { apiKey } = request
  const kind = nameOfRequest(apiKey)
  if (kind === undefined && !unnamed.has(apiKey)) {
    unnamed.add(apiKey)
    history.write({ what: 'event', type: 'unnamed_request', note: String(apiKey) })
  }
  if (kind === 'commit') return dying(noting(request, noteCommit(request)))
  if (kind === 'sync') return dying(noting(request, noteAssignment(request, topic)))
  dying(request)
}

type Note = (error: Error | null, answer: unknown) => void

/** Returns the same request. Its response is recorded before any other code gets it. */
const noting = (request: Request, note: Note): Request => ({
  ...request,
  payload: () => request.payload(),
  send: (answered = request.callback) =>
    request.send((error, answer) => {
      note(error, answer)
      answered(error, answer)
    }),
})

function noteCommit(request: Request): Note {
  const commit = readCommit(request.payload())
  const sentAt = Date.now()
  return (error) => {
    const isAccepted = error === null
    const note = isAccepted ? {} : { note: String(error) }
    history.write({ what: 'commit', ...commit, sentAt, isAccepted, ...note })
  }
}

function noteAssignment(request: Request, topic: string): Note {
  const sync = readSync(request.payload())
  return (error, answer) => {
    if (error !== null) return
    const { assignment } = answer as { readonly assignment: Buffer }
    history.write({ what: 'assigned', ...sync, topic, places: readAssignment(assignment) })
  }
}

/** Records the position of each delivered record. */
function noteDeliveries(transport: KafkaTransport): KafkaTransport {
  const receive = transport.receive.bind(transport)
  transport.receive = (receiver) =>
    receive({
      deliver(delivery) {
        const { topic, partition, offset } = delivery.raw
        const position = `${topic}/${partition}/${offset}`
        history.write({ what: 'delivered', id: delivery.key, position })
        receiver.deliver(delivery)
      },
      lost: (delivery) => receiver.lost(delivery),
    })
  return transport
}

let consumers: readonly Consumer[] = []

/** A process that has to die while it leaves the group must leave it first. */
function afterSuccess(): void {
  if (failpoint?.request !== 'leave') return
  void Promise.all(consumers.map((consumer) => consumer.stop({ drain: '1s' })))
}

const start = (topic: string): Promise<Consumer> =>
  consume(
    noteDeliveries(
      kafka({
        brokers,
        topic,
        group: options.group ?? groupOf(topic),
        order: options.order ?? 'none',
        handOff: options.handOff ?? 'atLeastOnce',
        sessionTimeout: options.sessionMs,
        drainTimeout: options.drainMs,
        confirmTimeout: options.confirmMs,
        client: { clientId: name, context: new Wire((request) => watched(request, topic)) },
      }),
    ),
    handlerOf({
      ...options,
      history,
      die,
      countRun: (id) => countRun(pool, run, id),
      takeEffect: (_, effects) => effects.add(name),
    }),
    {
      ...policy,
      classify: RULES,
      logger: 'off',
      inbox: inboxOf({
        pool,
        run,
        onSuccess(id, isNew) {
          history.write({ what: 'effect', id, isNew })
          afterSuccess()
        },
      }),
    },
  )

await live({
  history,
  async start() {
    consumers = await Promise.all(options.queues.map(start))
    return consumers
  },
  end: () => pool.end(),
})
