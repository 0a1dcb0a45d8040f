import type { Drill } from '../../drill.ts'
import { downstreamBreaks } from './break.ts'
import { END_TO_END } from './end-to-end.ts'
import { foreign } from './foreign/foreign.ts'
import { hostile } from './hostile/hostile.ts'

/** The way of dead letters from failure to proof, played whole. */
export const DRILLS: readonly Drill[] = [...END_TO_END, downstreamBreaks, foreign, hostile]
