import type { Kind } from '../../evidence/message.ts'
import {
  type Boundary,
  checkDeaths,
  DEATHS,
  deathAt,
  dieAtEach,
} from '../../harness/crash-points.ts'
import type { Point, RedisConsumerOptions, Step } from '../consumer-options.ts'
import type { RedisScenario } from '../world.ts'

const POINTS: readonly Point[] = ['before', 'after']

/** The kind of message that leads to each step. Each step is one script, so it has two points. */
const STEPS: Readonly<Record<Step, Kind>> = {
  declare: 'good',
  claim: 'good',
  settle: 'good',
  retry: 'flaky',
  'dead-letter': 'business',
  quarantine: 'repeats',
  'give-back': 'outage',
}

const BOUNDARIES: readonly Boundary<RedisConsumerOptions>[] = Object.entries(STEPS).flatMap(
  ([step, kind]) =>
    POINTS.map((point) => deathAt(`${step} ${point}`, kind, { step: step as Step, point })),
)

export const killAtBoundaries: RedisScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies before and after each of its scripts, ${BOUNDARIES.length} deaths; one duplicate per death, nothing lost`,
  service: 'redis-restarts',
  messages: DEATHS,
  play: (world) => dieAtEach(world, BOUNDARIES),
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
