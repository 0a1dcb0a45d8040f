import { type FileStoreOptions, resolveOptions } from './options.ts'
import { type FileStore, Store } from './store.ts'

/**
 * Dead letters in files that people can read: JSON lines, a folder for each day. A save that is
 * acknowledged survives the death of the process, and of the machine unless `fsync` is `'never'`.
 *
 * ```ts
 * const store = fileStore({ directory: '/var/lib/orders/dead-letters' })
 * ```
 */
export function fileStore(options: FileStoreOptions): FileStore {
  return new Store(resolveOptions(options))
}

export type { FileStore } from './store.ts'
export type { FileStoreOptions } from './options.ts'
