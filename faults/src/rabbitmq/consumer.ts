/** A consumer process: `consume` on the transport under test, with a real effect and a history of its own. */
import { business, type Rule } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { type Consumer, consume, onEvent, type RedriveEvent } from '@redrive/runtime'
import { openDatabase, postgresInbox } from '../effects.ts'
import { openHistory } from '../history.ts'
import type { Answer, ConsumerOptions, Request } from './consumer-options.ts'
import { connectWith } from './failpoints.ts'
import { ComeBackLater, handlerOf, Refused } from './handler.ts'

const options = JSON.parse(process.argv[2] ?? '') as ConsumerOptions
const { name, run, urls, policy, failpoint } = options
const history = openHistory(options.folder, name)
const pool = openDatabase(options.databaseUrl)

/** As `kill -9`, at an exact place. */
function die(where: string): never {
  history.write({ what: 'dies', where })
  process.kill(process.pid, 'SIGKILL')
  throw new Error('unreachable')
}

/** What the checker counts, and what an operator would be told. */
function noteEvent(event: RedriveEvent): void {
  const { type } = event
  if (type === 'enacted') {
    if (event.enactment.kind === 'done') return
    history.write({
      what: 'event',
      type: event.enactment.kind,
      id: event.deliveryId,
      note: event.decision.kind,
    })
    return
  }
  if (type === 'attempt_failed' || type === 'inline_retry') return
  history.write({ what: 'event', type, ...about(event) })
}

function about(event: RedriveEvent): { readonly id?: string; readonly note?: string } {
  if ('error' in event) return { note: String(event.error) }
  if ('reason' in event) return { note: String(event.reason) }
  return {}
}

const rules: readonly Rule[] = [business(Refused), { class: 'unknown', when: ComeBackLater }]

const start = (queue: string): Promise<Consumer> =>
  consume(
    rabbitmq({
      url: urls,
      queue,
      ...(options.topology === undefined ? {} : { topology: options.topology }),
      ...(failpoint === undefined ? {} : { connect: connectWith(failpoint, die) }),
    }),
    handlerOf({
      pool,
      run,
      name,
      history,
      die,
      workMs: options.workMs,
      isDependencyDown: options.isDependencyDown ?? false,
    }),
    {
      ...policy,
      classify: rules,
      inbox: postgresInbox({
        pool,
        run,
        onSuccess: (id, isNew) => history.write({ what: 'effect', id, isNew }),
      }),
    },
  )

const answer = (what: Answer) => void process.send?.(what)

onEvent(noteEvent)
const consumers = await Promise.all(options.queues.map(start))
history.write({ what: 'ready' })
answer({ kind: 'ready' })

const memory = setInterval(
  () => history.write({ what: 'memory', bytes: process.memoryUsage.rss() }),
  500,
)

async function stop(): Promise<void> {
  clearInterval(memory)
  await Promise.all(consumers.map((consumer) => consumer.stop({ drain: '10s' })))
  await pool.end()
  process.exit(0)
}

process.on('message', (request: Request) => {
  if (request === 'stop') return void stop()
  const counts = consumers.map((consumer) => consumer.stats())
  answer({ kind: 'stats', busy: counts.reduce((sum, one) => sum + one.running + one.waiting, 0) })
})
// The harness is gone, and nobody would stop us any more.
process.on('disconnect', () => process.exit(1))
