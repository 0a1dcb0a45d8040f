import { randomBytes } from 'node:crypto'
import type { Mix } from '../../evidence/message.ts'
import { plan } from '../../evidence/message.ts'
import { ready } from '../../harness/fleet.ts'
import { type Child, startChild } from '../../harness/process.ts'
import { until } from '../../harness/wait.ts'
import { type Broker, depthsOf, describeQueues, onChannel } from '../broker.ts'
import type { OldConsumerOptions } from '../old-consumer.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'

type Arguments = Readonly<Record<string, string | number>>

/** Queues as other programs declare them. */
const QUEUES: readonly {
  readonly name: string
  readonly isClassic: boolean
  readonly hasDeadLetters: boolean
  readonly args: Arguments
}[] = [
  { name: 'classic', isClassic: true, hasDeadLetters: false, args: {} },
  {
    name: 'classic-priorities',
    isClassic: true,
    hasDeadLetters: true,
    args: { 'x-max-priority': 5, 'x-max-length': 100_000 },
  },
  {
    name: 'quorum',
    isClassic: false,
    hasDeadLetters: false,
    args: { 'x-queue-type': 'quorum' },
  },
  {
    name: 'quorum-limit',
    isClassic: false,
    hasDeadLetters: true,
    args: { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000 },
  },
]

/** While the old consumer runs, no message may fail for good: it would reject it its own way. */
const WITH_OLD: Mix = { flaky: 12 }
const WITHOUT_OLD: Mix = { flaky: 12, business: 4 }
const RATE = 400
const CONSUMERS = 2
const QUIET = { withinMs: 120_000, everyMs: 250 }

const OLD_CONSUMER = new URL('../old-consumer.ts', import.meta.url)

const queueOf = ({ run }: RabbitWorld, name: string) => `${run}-${name}`

/** Creates the queues, some with a dead-letter queue that has the name Redrive would use itself. */
async function makeQueues(world: RabbitWorld): Promise<readonly string[]> {
  await onChannel(world.broker, async (channel) => {
    for (const { name, hasDeadLetters, args } of QUEUES) {
      const queue = queueOf(world, name)
      const exchange = `${queue}-failed`
      if (hasDeadLetters) {
        await channel.assertExchange(exchange, 'fanout', { durable: true })
        await channel.assertQueue(`${queue}.dlq`, { durable: true })
        await channel.bindQueue(`${queue}.dlq`, exchange, '')
      }
      const dead = hasDeadLetters ? { 'x-dead-letter-exchange': exchange } : {}
      await channel.assertQueue(queue, { durable: true, arguments: { ...args, ...dead } })
    }
  })
  return QUEUES.map(({ name }) => queueOf(world, name))
}

async function startOld(world: RabbitWorld, queues: readonly string[]): Promise<Child> {
  const { folder, run, databaseUrl, broker, history } = world
  const name = `old-${randomBytes(2).toString('hex')}`
  history.write({ what: 'spawned', process: name, inFlight: 0 })
  const options: OldConsumerOptions = { name, folder, run, databaseUrl, urls: broker.urls, queues }
  const old = startChild(OLD_CONSUMER, options)
  world.atEnd(() => stopOld(old))
  await old.waitFor('ready')
  return old
}

async function stopOld(old: Child): Promise<void> {
  old.send('stop')
  await old.gone
}

/** Sends a part of the messages, the same number to each queue. */
async function send(world: RabbitWorld, queues: readonly string[], part: string, mix: Mix) {
  const each = Math.ceil(world.messages / queues.length)
  const sent = queues.map((queue) =>
    world.send(queue, plan(`${queue}/${part}`, each, mix), RATE / queues.length),
  )
  await Promise.all(sent)
}

/** Waits until the queues and the delay queues are empty. */
const emptied = ({ broker, run }: RabbitWorld) =>
  until('all retries have ended', () => isEmpty(broker, run), QUIET)

async function isEmpty(broker: Broker, run: string): Promise<boolean> {
  const { source, delay } = await depthsOf(broker, run)
  return source + delay === 0
}

export const adoption: RabbitScenario = {
  name: 'adoption',
  story: 'queues of other programs are adopted next to their old consumer, and returned to it',
  service: 'rabbitmq',
  messages: { quick: 400, full: 4_000 },
  async play(world) {
    const queues = await makeQueues(world)
    const before = await describeQueues(world.broker, world.run)
    await send(world, queues, 'waiting', WITH_OLD)
    const old = await startOld(world, queues)
    const classicQueues = QUEUES.flatMap(({ name, isClassic }) =>
      isClassic ? [queueOf(world, name)] : [],
    )
    const fleet = world.fleet({ queues, topology: 'adopt', classicQueues })
    for (let count = 0; count < CONSUMERS; count++) fleet.start()
    await ready(fleet, CONSUMERS)

    const both = send(world, queues, 'side by side', WITH_OLD)
    const end = world.fault('a new consumer is killed')
    const [victim] = fleet.members()
    victim?.signal('SIGKILL')
    await victim?.gone
    fleet.start()
    end()
    await both

    world.say('the old consumer is removed')
    await stopOld(old)
    await send(world, queues, 'new', WITHOUT_OLD)
    await emptied(world)

    world.say('and comes back instead of the new ones')
    await fleet.stop()
    await startOld(world, queues)
    await send(world, queues, 'back', WITH_OLD)
    world.heal()
    mustBeUnchanged(before, await describeQueues(world.broker, world.run))
  },
}

/** Throws when a queue that existed before was deleted or has other settings. */
function mustBeUnchanged(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): void {
  for (const [queue, settings] of before) {
    if (after.get(queue) !== settings)
      throw new Error(`${queue} was ${settings} and is ${after.get(queue) ?? 'missing'}.`)
  }
}
