import type { Evidence, Violation } from '../../evidence.ts'
import { readHistory } from '../../history.ts'
import { becomesTrue, lasting, until } from '../../wait.ts'
import { depthsOf, drainRun, limitQueue } from '../broker.ts'
import { declareAll, declareSource, deleteEmpty } from '../topology.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const CONSUMERS = 2
const RATE = 400
/** Half a minute until somebody is told: that is when a person should hear of it. */
const TOLD_MS = 30_000

/** 3 s, when consumers can help themselves: a broken queue is noticed with the next dead letter. */
const MENDED_MS = 3_000

const isAlarm = (type: string) => type === 'hand_off_stuck' || type === 'consumer_paused'

/** The consumers say that hand-offs do not go through, soon after they do not. */
function checkTold({ entries }: Evidence): readonly Violation[] {
  const begins =
    entries.find((entry) => entry.what === 'fault' && entry.phase === 'begins')?.at ?? 0
  const isTold = entries.some(
    ({ at, ...entry }) =>
      entry.what === 'event' && isAlarm(entry.type) && at >= begins && at <= begins + TOLD_MS,
  )
  return isTold ? [] : [{ rule: 'scenario', text: `nobody was told within ${TOLD_MS} ms` }]
}

const hasAlarm = ({ folder }: RabbitWorld) =>
  readHistory(folder).some((entry) => entry.what === 'event' && isAlarm(entry.type))

interface Breakage {
  readonly name: string
  readonly story: string
  readonly topology?: 'declare' | 'verify'
  /** The consumers may mend it by themselves; then nobody need be told. */
  readonly isMendable?: boolean
  /** Before the load: there is nothing in the queues yet that it could destroy. */
  breaks(world: RabbitWorld): Promise<void>
  heals(world: RabbitWorld): Promise<void>
}

/**
 * Breaks what takes dead letters, kills a consumer that holds some, and heals. What had been released
 * without proof would be gone with the killed one.
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
      const end = world.fault('dead letters are not taken')
      const withinMs = isMendable ? MENDED_MS : TOLD_MS
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
  check: isMendable ? () => [] : checkTold,
})

const deadLetterQueueOf = ({ run }: RabbitWorld) => `${run}.dlq`

/** Enough that every consumer has handed some over, and believes that the queue is there. */
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
  await until('the first dead letters are there', areThere, { withinMs: TOLD_MS })
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
    story: 'the dead-letter queue takes three messages and refuses the rest',
    breaks: (world) => limitQueue(world.broker, deadLetterQueueOf(world), 3),
    // Raised, not removed: RabbitMQ 3.10 goes on refusing on channels that were refused before when
    // the limit is taken away altogether, until they are opened again.
    heals: (world) => limitQueue(world.broker, deadLetterQueueOf(world), 1_000_000),
  }),
  deadLettersBroken({
    name: 'dlq-unroutable',
    story: 'dead letters and quarantine lead nowhere, and consumers may not declare anything',
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
