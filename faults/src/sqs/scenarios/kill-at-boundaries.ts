import type { Kind } from '../../evidence/message.ts'
import { type JsonPolicy, POLICY } from '../../harness/consumer-options.ts'
import { type Boundary, checkDeaths, dieAtEach } from '../../harness/crash-points.ts'
import type { CopyKind, Point, SqsConsumerOptions } from '../consumer-options.ts'
import type { SqsScenario } from '../world.ts'

/** Every point of copy, confirm and release at which a step may be half done. */
const HAND_OFF: readonly Point[] = ['send.before', 'send.done', 'delete.before', 'delete.done']

interface Decided {
  /** The kind of message that leads to the decision. */
  readonly kind: Kind
  /** None where no copy is made. */
  readonly copy?: CopyKind
  readonly points: readonly Point[]
}

const DECISIONS: Readonly<Record<string, Decided>> = {
  retry: { kind: 'flaky', copy: 'retry', points: HAND_OFF },
  'dead-letter': { kind: 'business', copy: 'dead', points: HAND_OFF },
  quarantine: { kind: 'repeats', copy: 'quarantine', points: HAND_OFF },
  'give-back': { kind: 'outage', copy: 'return', points: HAND_OFF },
  settle: {
    kind: 'good',
    points: ['delete.before', 'delete.done', 'declare.before', 'declare.done'],
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

const BOUNDARIES: readonly Boundary<SqsConsumerOptions>[] = Object.entries(DECISIONS).flatMap(
  ([decision, { kind, copy, points }]) =>
    points.map((point) => ({
      name: `${decision} ${point}`,
      kind,
      consumers: [
        {
          policy: kind === 'outage' ? OPENS_AT_ONCE : ONE_BY_ONE,
          workMs: 0,
          isDependencyDown: true,
          failpoint: { point, ...(copy === undefined ? {} : { copy }) },
        },
      ],
    })),
)

export const killAtBoundaries: SqsScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies at each of ${BOUNDARIES.length} points of a hand-off; one duplicate per death, nothing lost`,
  service: 'elasticmq',
  messages: { smoke: 1, quick: 1, full: 5 },
  play: (world) => dieAtEach(world, BOUNDARIES, { policy: ONE_BY_ONE, workMs: 0 }),
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
