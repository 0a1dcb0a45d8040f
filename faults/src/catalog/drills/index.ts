import type { Scenario } from '../../harness/scenario.ts'
import { downstreamBreaks } from './break.ts'
import { END_TO_END } from './end-to-end.ts'
import { foreign } from './foreign/foreign.ts'
import { hostile } from './hostile/hostile.ts'
import { putBack } from './put-back/put-back.ts'
import { SCHEDULE } from './schedule/schedule.ts'
import { setAside } from './set-aside/set-aside.ts'

/** Fault scenarios that play the whole way of dead letters, from failure to confirmation. */
export const DRILLS: readonly Scenario[] = [
  ...END_TO_END,
  downstreamBreaks,
  foreign,
  hostile,
  ...SCHEDULE,
  putBack,
  setAside,
]
