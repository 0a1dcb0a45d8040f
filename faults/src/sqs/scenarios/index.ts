import type { SqsScenario } from '../world.ts'
import { deliveredTwice } from './delivered-twice.ts'
import { killAtBoundaries } from './kill-at-boundaries.ts'
import { repliesLost } from './replies-lost.ts'
import { serverRestart } from './server-restart.ts'
import { clientClock, crashLoop, killRandom } from './shared.ts'
import { stopped } from './stopped.ts'

export const SCENARIOS: readonly SqsScenario[] = [
  killAtBoundaries,
  killRandom,
  stopped,
  serverRestart,
  repliesLost,
  deliveredTwice,
  crashLoop,
  clientClock,
]
