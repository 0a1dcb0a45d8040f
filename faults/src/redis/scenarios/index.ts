import type { RedisScenario } from '../world.ts'
import { duplicateDelivery } from './duplicate-delivery.ts'
import { failOver } from './fail-over.ts'
import { fullServer } from './full-server.ts'
import { killAtBoundaries } from './kill-at-boundaries.ts'
import { repliesLost } from './replies-lost.ts'
import { serverRestart } from './server-restart.ts'
import { clientClock, crashLoop, killRandom } from './shared.ts'
import { stopped } from './stopped.ts'
import { trimmedStream } from './trimmed-stream.ts'

export const SCENARIOS: readonly RedisScenario[] = [
  killAtBoundaries,
  killRandom,
  stopped,
  serverRestart,
  failOver,
  repliesLost,
  fullServer,
  trimmedStream,
  duplicateDelivery,
  crashLoop,
  clientClock,
]
