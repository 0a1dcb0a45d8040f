import { type FileStoreOptions, resolveOptions } from './options.ts'
import { type FileStore, Store } from './store.ts'

/**
 * Creates a store of dead letters in readable files: JSON lines, one folder per day. An acknowledged save
 * survives a crash of the process, and of the machine unless `fsync` is `'never'`.
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
