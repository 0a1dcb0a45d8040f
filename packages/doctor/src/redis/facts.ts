import type { Unreadable } from '../finding.ts'

/** The live settings of a Redis server. A part is undefined when it could not be read; `unreadable` contains the reason. */
export interface RedisFacts {
  /** The address without credentials, such as `localhost:6379`. */
  readonly server: string
  readonly version: string | undefined
  readonly role: 'primary' | 'replica' | undefined
  /** Number of connected replicas. */
  readonly replicas: number
  readonly isAppendOnly: boolean | undefined
  /** When the append-only file reaches the disk: `always`, `everysec` or `no`. */
  readonly appendFsync: string | undefined
  readonly evictionPolicy: string | undefined
  /** Sizes in bytes. `most` is 0 without a limit. */
  readonly memory: { readonly used: number; readonly most: number } | undefined
  /** Writes to the disk that failed: `snapshot` or `append-only file`. */
  readonly failedWrites: readonly string[]
  readonly unreadable: readonly Unreadable[]
}
