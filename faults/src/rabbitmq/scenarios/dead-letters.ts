import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { readHistory } from '../../evidence/history.ts'
import { becomesTrue, lasting, until } from '../../harness/wait.ts'
import { depthsOf, drainRun, limitQueue } from '../broker.ts'
import { declareAll, declareSource, deleteEmpty } from '../topology.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const CONSUMERS = 2
const RATE = 400
/** 30 s until an operator is notified. */
const REPORTED_MS = 30_000

/** 3 s, when consumers can repair it: they notice a broken queue at the next dead letter. */
const MENDED_MS = 3_000

const isAlarm = (type: string) => type === 'hand_off_stuck' || type === 'consumer_paused'

/** Checks that the consumers soon report failing hand-offs. */
function checkReported({ entries }: Evidence): readonly Violation[] {
  const begins =
    entries.find((entry) => entry.what === 'fault' && entry.phase === 'begins')?.at ?? 0
  const isReported = entries.some(
    ({ at, ...entry }) =>
      entry.what === 'event' && isAlarm(entry.type) && at >= begins && at <= begins + REPORTED_MS,
  )
  return isReported
    ? []
    : [{ rule: 'scenario', text: `no failure was reported within ${REPORTED_MS} ms` }]
}

const hasAlarm = ({ folder }: RabbitWorld) =>
  readHistory(folder).some((entry) => entry.what === 'event' && isAlarm(entry.type))

interface Breakage {
  readonly name: string
  readonly story: string
  readonly topology?: 'declare' | 'verify'
  /** Whether the consumers can repair it automatically; then no report is needed. */
  readonly isMendable?: boolean
  /** Breaks the queue before the load, when it contains no messages that would be lost. */
  breaks(world: RabbitWorld): Promise<void>
  heals(world: RabbitWorld): Promise<void>
}

/**
 * Breaks the dead-letter queue, kills a consumer that holds dead letters, and repairs the queue. A
 * message released without a confirmation would be lost with the killed consumer.
 */
const deadLettersBroken = ({
  name,
  story,
  topology,
  isMendable = false,
  ...breakage
}: Breakage): RabbitScenario => ({
  name,
  story,
  service: 'rabbitmq',
  messages: { quick: 1_000, full: 8_000 },
  async play(world) {
    if (topology === 'verify') await declareAll(world.broker, world.run)
    const load = {
      consumers: CONSUMERS,
      ratePerSecond: RATE,
      fleet: topology === undefined ? {} : { topology },
      before: () => breakage.breaks(world),
    }
    await underLoad(world, load, async (fleet) => {
      const end = world.fault('dead letters are not accepted')
      const withinMs = isMendable ? MENDED_MS : REPORTED_MS
      await becomesTrue(() => hasAlarm(world), { withinMs, everyMs: 500 })
      const [victim] = fleet.members()
      victim?.signal('SIGKILL')
      await victim?.gone
      await lasting(2_000)
      await breakage.heals(world)
      fleet.start()
      end()
    })
  },
  check: isMendable ? () => [] : checkReported,
})

const deadLetterQueueOf = ({ run }: RabbitWorld) => `${run}.dlq`

/** Enough that every consumer has handed some over and knows that the queue exists. */
const FIRST = 40

async function deleteAfterUse(world: RabbitWorld): Promise<void> {
  const { broker, run, taken } = world
  await world.produce({
    ratePerSecond: RATE,
    mix: { business: 100 },
    messages: FIRST,
    part: '-first',
  })
  const areThere = async () => (await depthsOf(broker, run)).dlq >= FIRST
  await until('the first dead letters have arrived', areThere, { withinMs: REPORTED_MS })
  taken.push(...(await drainRun(broker, deadLetterQueueOf(world))))
  await deleteEmpty(broker, deadLetterQueueOf(world))
}

export const deadLetterFaults: readonly RabbitScenario[] = [
  deadLettersBroken({
    name: 'dlq-missing',
    story: 'the dead-letter queue is deleted after consumers have used it',
    isMendable: true,
    breaks: deleteAfterUse,
    heals: (world) => declareSource(world.broker, world.run),
  }),
  deadLettersBroken({
    name: 'dlq-full',
    story: 'the dead-letter queue accepts three messages and rejects the rest',
    breaks: (world) => limitQueue(world.broker, deadLetterQueueOf(world), 3),
    // The limit is raised and not removed. After a removal, RabbitMQ 3.10 keeps rejecting on
    // channels that had a rejection, until they are reopened.
    heals: (world) => limitQueue(world.broker, deadLetterQueueOf(world), 1_000_000),
  }),
  deadLettersBroken({
    name: 'dlq-unroutable',
    story: 'dead-letter and quarantine queues are missing, and consumers may not declare queues',
    topology: 'verify',
    breaks: (world) =>
      deleteEmpty(
        world.broker,
        deadLetterQueueOf(world),
        `${deadLetterQueueOf(world)}.quarantine.unknown`,
      ),
    heals: (world) => declareAll(world.broker, world.run),
  }),
]
