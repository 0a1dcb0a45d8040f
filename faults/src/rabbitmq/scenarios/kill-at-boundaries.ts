import {
  type Boundary,
  checkDeaths,
  DEATHS,
  deathAt,
  dieAtEach,
  queuesOf,
} from '../../harness/crash-points.ts'
import type { Kind } from '../../evidence/message.ts'
import type { Point, RabbitConsumerOptions } from '../consumer-options.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

/** Every point of copy, confirm and release at which a step may be half done. */
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
  /** End of the name of the queue that receives the copy; none for the source itself. */
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

const BOUNDARIES: readonly Boundary<RabbitConsumerOptions>[] = Object.entries(DECISIONS).flatMap(
  ([decision, { kind, points, ...selected }]) =>
    points.map((point) => deathAt(`${decision} ${point}`, kind, { point, ...selected })),
)

export const killAtBoundaries: RabbitScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies at each of ${BOUNDARIES.length} points of a hand-off; one duplicate per death, nothing lost`,
  service: 'rabbitmq',
  messages: DEATHS,
  async play(world) {
    await declareSource(world.broker, ...queuesOf(world, BOUNDARIES))
    await dieAtEach(world, BOUNDARIES)
  },
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
