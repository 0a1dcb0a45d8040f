import type { Pool } from 'pg'
import type { PayloadKeys } from '../../encryption.ts'
import type { Proof } from './options.ts'

/** Allowed replay targets of each source, by source name. */
type Origins = Readonly<Record<string, readonly string[]>>

/** The dependencies of all replay functions. */
export interface ReplayDeps {
  readonly pool: Pool
  readonly keys: PayloadKeys | undefined
  readonly origins: Origins
  /** What shows the outcomes of each source, by source name. */
  readonly proofs: Readonly<Record<string, Proof>>
  /** Time for all schema checks of one plan. */
  readonly schemaTimeoutMs: number
}
