import { duplicatesIn, type Violation } from '../../check.ts'
import type { Kind } from '../../message.ts'
import { becomesTrue } from '../../wait.ts'
import type { Failpoint, JsonPolicy, Point } from '../consumer-options.ts'
import { ready } from '../fleet.ts'
import { declareSource } from '../topology.ts'
import { POLICY, type RabbitScenario, type World } from '../world.ts'

/** Every moment of copy, prove, release at which something may be half done. */
const HAND_OFF: readonly Point[] = [
  'publish.before',
  'publish.written',
  'confirm.arrived',
  'confirm.seen',
  'ack.before',
  'ack.written',
]
const DECLARE: readonly Point[] = ['declare.before', 'declare.after']

interface Decided {
  /** The kind of message that leads to the decision. */
  readonly kind: Kind
  /** How the name of the queue ends that the copy goes to; none for the source itself. */
  readonly queue?: string
  readonly points: readonly Point[]
}

const DECISIONS: Readonly<Record<string, Decided>> = {
  retry: { kind: 'flaky', queue: String.raw`\.delay\..*`, points: [...HAND_OFF, ...DECLARE] },
  'dead-letter': { kind: 'business', queue: String.raw`\.dlq`, points: HAND_OFF },
  quarantine: {
    kind: 'repeats',
    queue: String.raw`\.quarantine\..*`,
    points: [...HAND_OFF, ...DECLARE],
  },
  'give-back': {
    kind: 'outage',
    queue: String.raw`-\d+`,
    points: [...HAND_OFF, 'cancel.before', 'cancel.after'],
  },
  settle: {
    kind: 'good',
    points: ['ack.before', 'ack.written', 'consume.before', 'consume.after'],
  },
}

interface Case {
  readonly name: string
  readonly index: number
  readonly kind: Kind
  readonly failpoint: Failpoint
}

const CASES: readonly Case[] = Object.entries(DECISIONS)
  .flatMap(([decision, { kind, queue, points }]) =>
    points.map((point) => ({
      name: `${decision} ${point}`,
      kind,
      failpoint: { point, ...(queue === undefined ? {} : { queue }) },
    })),
  )
  .map((one, index) => ({ ...one, index }))

/** One message in hand, so that a kill may cost one duplicate and no more. */
const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1, poison: { repeats: 2 } }
/** The first failure opens the breaker, and the message is given back. */
const OPENS_AT_ONCE: JsonPolicy = {
  ...ONE_BY_ONE,
  outage: {},
  breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '1s' },
}

/** As many at a time as there are cores to start processes on. */
const AT_ONCE = 3
/** 20 s: starting takes one, retries take another. */
const REACHED_MS = 20_000

export const killAtBoundaries: RabbitScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies at each of ${CASES.length} moments of a hand-off; one duplicate per death, nothing lost`,
  service: 'rabbitmq',
  messages: { quick: 1, full: 5 },
  async play(world) {
    const end = world.fault('deaths at every boundary')
    const cases = CASES.values()
    const worker = async () => {
      for (const one of cases) await dieAt(world, one)
    }
    await declareSource(world.broker, ...CASES.map((one) => queueOf(world, one)))
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    end()
    world.heal()
    // One healthy consumer for all that is left behind.
    const fleet = world.fleet({
      queues: CASES.map((one) => queueOf(world, one)),
      policy: ONE_BY_ONE,
      workMs: 0,
    })
    fleet.start()
    await ready(fleet, 1)
  },
  check({ entries, ...evidence }) {
    const deaths = entries.filter(({ what }) => what === 'dies').length
    const missing: readonly Violation[] =
      deaths === CASES.length
        ? []
        : [
            {
              rule: 'scenario',
              text: `${deaths} deaths where they were planned, ${CASES.length} planned`,
            },
          ]
    const tooMany = duplicatesIn({ entries, ...evidence }).filter(([, surplus]) => surplus > 1)
    return [
      ...missing,
      ...tooMany.map(([id, surplus]) => ({
        rule: 'duplicates over the bound' as const,
        id,
        text: `${surplus} duplicates after one death`,
      })),
    ]
  },
}

const queueOf = ({ run }: World, { index }: Case) => `${run}-${index}`

/** Sends a message, and waits until the consumer that takes it has killed itself where it was told to. */
async function dieAt(world: World, one: Case): Promise<void> {
  const { name, index, kind, failpoint } = one
  const ids = Array.from({ length: world.messages }, (_, count) => `${world.run}-${index}/${count}`)
  await world.send(
    queueOf(world, one),
    ids.map((id) => ({ id, kind })),
  )
  const fleet = world.fleet({
    queues: [queueOf(world, one)],
    policy: kind === 'outage' ? OPENS_AT_ONCE : ONE_BY_ONE,
    workMs: 0,
    isDependencyDown: true,
    failpoint,
  })
  const member = fleet.start()
  const isDead = await becomesTrue(() => !member.isAlive, { withinMs: REACHED_MS })
  if (isDead) return world.say(name)
  await fleet.stop()
  throw new Error(`${name} was never reached`)
}
