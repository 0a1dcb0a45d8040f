import { openDirectory } from './folders.ts'
import { type FileStoreOptions, resolveOptions } from './options.ts'
import { type FileStore, Store } from './store.ts'

/**
 * Creates a store of dead letters in readable files: JSON lines, one folder per day. An acknowledged save
 * survives a crash of the process, and of the machine unless `fsync` is `'never'`. Creates the directory, and throws
 * `UNREACHABLE` when this process cannot use it.
 *
 * ```ts
 * const store = fileStore({ directory: '/var/lib/orders/dead-letters' })
 * ```
 */
export function fileStore(options: FileStoreOptions): FileStore {
  const resolved = resolveOptions(options)
  openDirectory(resolved.directory, resolved.fsync !== 'never')
  return new Store(resolved)
}

export type { FileStore } from './store.ts'
export type { FileStoreOptions } from './options.ts'
