import type { Kind } from '../../evidence/message.ts'
import { type JsonPolicy, POLICY } from '../../harness/consumer-options.ts'
import { type Boundary, checkDeaths, dieAtEach } from '../../harness/crash-points.ts'
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

/** One message in flight, so that a kill causes at most one duplicate. */
const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1, poison: { repeats: 2 } }
/** The first failure opens the breaker, and the message is returned. */
const OPENS_AT_ONCE: JsonPolicy = {
  ...ONE_BY_ONE,
  outage: {},
  breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '1s' },
}

const BOUNDARIES: readonly Boundary<RedisConsumerOptions>[] = Object.entries(STEPS).flatMap(
  ([step, kind]) =>
    POINTS.map((point) => ({
      name: `${step} ${point}`,
      kind,
      consumers: [
        {
          policy: kind === 'outage' ? OPENS_AT_ONCE : ONE_BY_ONE,
          workMs: 0,
          isDependencyDown: true,
          failpoint: { step: step as Step, point },
        },
      ],
    })),
)

export const killAtBoundaries: RedisScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies before and after each of its scripts, ${BOUNDARIES.length} deaths; one duplicate per death, nothing lost`,
  service: 'redis-restarts',
  messages: { smoke: 1, quick: 1, full: 5 },
  play: (world) => dieAtEach(world, BOUNDARIES, { policy: ONE_BY_ONE, workMs: 0 }),
  check: (evidence) => checkDeaths(evidence, BOUNDARIES),
}
