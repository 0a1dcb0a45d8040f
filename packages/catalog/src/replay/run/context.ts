import type { Pool } from 'pg'
import type { PayloadKeys } from '../../encryption.ts'

/** Allowed replay targets of each source, by source name. */
type Origins = Readonly<Record<string, readonly string[]>>

/** The dependencies of all replay functions. */
export interface ReplayDeps {
  readonly pool: Pool
  readonly keys: PayloadKeys | undefined
  readonly origins: Origins
}
