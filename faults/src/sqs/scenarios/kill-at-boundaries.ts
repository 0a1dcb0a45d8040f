import type { Kind } from '../../evidence/message.ts'
import {
  type Boundary,
  checkDeaths,
  DEATHS,
  deathAt,
  dieAtEach,
} from '../../harness/crash-points.ts'
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

const BOUNDARIES: readonly Boundary<SqsConsumerOptions>[] = Object.entries(DECISIONS).flatMap(
  ([decision, { kind, points, ...selected }]) =>
    points.map((point) => deathAt(`${decision} ${point}`, kind, { point, ...selected })),
)

export const killAtBoundaries: SqsScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies at each of ${BOUNDARIES.length} points of a hand-off; one duplicate per death, nothing lost`,
  service: 'elasticmq',
  messages: DEATHS,
  play: (world) => dieAtEach(world, BOUNDARIES),
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
