import {
  type Boundary,
  checkDeaths,
  DEATHS,
  deathAt,
  dieAtEach,
} from '../../harness/crash-points.ts'
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

const BOUNDARIES: readonly Boundary<NatsConsumerOptions>[] = Object.entries(DECISIONS).flatMap(
  ([decision, { kind, points, ...selected }]) =>
    points.map((point) => deathAt(`${decision} ${point}`, kind, { point, ...selected })),
)

export const killAtBoundaries: NatsScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies at each of ${BOUNDARIES.length} points of a hand-off; one duplicate per death, nothing lost`,
  service: 'nats-restarts',
  messages: DEATHS,
  play: (world) => dieAtEach(world, BOUNDARIES),
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
