import type { Pool } from 'pg'
import type { PayloadKeys } from '../seal.ts'

/** Where dead letters of a source may go back to, by the name of the source. */
export type Origins = Readonly<Record<string, readonly string[]>>

/** What everything about replays needs. */
export interface ReplayParts {
  readonly pool: Pool
  readonly keys: PayloadKeys | undefined
  readonly origins: Origins
}
