import type { PostgresScenario } from '../world.ts'
import { clientClock } from './client-clock.ts'
import { crashLoop } from './crash-loop.ts'
import { idleTransaction } from './idle-transaction.ts'
import { killAtBoundaries } from './kill-at-boundaries.ts'
import { killRandom } from './kill-random.ts'
import { longTransactions } from './long-transactions.ts'
import { maintenance } from './maintenance.ts'
import { failOver, primaryCrash } from './servers.ts'
import { stopped } from './stopped.ts'
import { answersLost, cuts, halfOpen, wakeOff } from './network.ts'
import { workerDies } from './worker-dies.ts'

export const SCENARIOS: readonly PostgresScenario[] = [
  killAtBoundaries,
  killRandom,
  stopped,
  workerDies,
  primaryCrash,
  failOver,
  longTransactions,
  idleTransaction,
  maintenance,
  clientClock,
  cuts,
  answersLost,
  halfOpen,
  wakeOff,
  crashLoop,
]
