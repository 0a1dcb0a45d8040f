import { CLAIMS } from './0002-claims.ts'
import { MAINTENANCE } from './0002-maintenance.ts'
import { REPLAY_FUNCTIONS } from './0002-replays.ts'

/** The protocol of the outbox, as functions. */
export const FUNCTIONS: string = [CLAIMS, REPLAY_FUNCTIONS, MAINTENANCE].join('')
