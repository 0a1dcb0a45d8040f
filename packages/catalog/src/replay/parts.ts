import type { Pool } from 'pg'
import type { PayloadKeys } from '../seal.ts'

/** What everything about replays needs. */
export interface ReplayParts {
  readonly pool: Pool
  readonly keys: PayloadKeys | undefined
}
