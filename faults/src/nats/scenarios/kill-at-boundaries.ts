import { type Boundary, checkDeaths, dieAtEach } from '../../harness/crash-points.ts'
import { type JsonPolicy, POLICY } from '../../harness/consumer-options.ts'
import type { Kind } from '../../evidence/message.ts'
import type { NatsConsumerOptions, Point } from '../consumer-options.ts'
import type { NatsScenario } from '../world.ts'

/** Every point of copy, confirm and release at which a step may be half done. */
const HAND_OFF: readonly Point[] = [
  'publish.before',
  'publish.written',
  'publish.confirmed',
  'ack.before',
  'ack.written',
  'ack.confirmed',
]

interface Decided {
  /** The kind of message that leads to the decision. */
  readonly kind: Kind
  /** End of the subject of the copy; none where no copy is made. */
  readonly subject?: string
  readonly points: readonly Point[]
}

const DECISIONS: Readonly<Record<string, Decided>> = {
  retry: { kind: 'flaky', subject: String.raw`\.delayed\..*`, points: HAND_OFF },
  'dead-letter': { kind: 'business', subject: String.raw`\.dead`, points: HAND_OFF },
  quarantine: { kind: 'repeats', subject: String.raw`\.quarantine`, points: HAND_OFF },
  'give-back': { kind: 'outage', subject: String.raw`\.retry`, points: HAND_OFF },
  settle: {
    kind: 'good',
    points: ['respond.before', 'respond.written', 'declare.before', 'declare.after'],
  },
}

/** One message in flight, so that a kill causes at most one duplicate. */
const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1, poison: { repeats: 2 } }
/** The first failure opens the breaker, and the message is returned. */
const OPENS_AT_ONCE: JsonPolicy = {
  ...ONE_BY_ONE,
  outage: {},
  breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '1s' },
}

const BOUNDARIES: readonly Boundary<NatsConsumerOptions>[] = Object.entries(DECISIONS).flatMap(
  ([decision, { kind, subject, points }]) =>
    points.map((point) => ({
      name: `${decision} ${point}`,
      kind,
      consumers: [
        {
          policy: kind === 'outage' ? OPENS_AT_ONCE : ONE_BY_ONE,
          workMs: 0,
          isDependencyDown: true,
          failpoint: { point, ...(subject === undefined ? {} : { subject }) },
        },
      ],
    })),
)

export const killAtBoundaries: NatsScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies at each of ${BOUNDARIES.length} points of a hand-off; one duplicate per death, nothing lost`,
  service: 'nats-restarts',
  messages: { smoke: 1, quick: 1, full: 5 },
  play: (world) => dieAtEach(world, BOUNDARIES, { policy: ONE_BY_ONE, workMs: 0 }),
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
