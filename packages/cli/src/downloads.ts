import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from './io.ts'

/** Returns a folder for downloads. All projects of a user share it. Root has none that other users can read. */
export function downloadsFolder(env: Environment, name: string): string {
  const { XDG_CACHE_HOME } = env
  const { LOCALAPPDATA } = env as Readonly<Record<string, string | undefined>>
  const caches =
    XDG_CACHE_HOME ||
    (process.getuid?.() === 0
      ? '/var/cache'
      : LOCALAPPDATA || join(env.HOME || homedir(), '.cache'))
  return join(caches, 'redrive', name)
}
