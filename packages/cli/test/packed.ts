import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

/** An empty folder of a new user: nothing is installed, and the cache of npm is empty. */
export interface NewUser {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
  remove(): void
}

export function newUser(registry: string): NewUser {
  const root = mkdtempSync(join(tmpdir(), 'redrive-new-user-'))
  // Root runs PostgreSQL as another user, who must be able to enter it.
  chmodSync(root, 0o755)
  const folder = join(root, 'project')
  mkdirSync(folder)
  // The certificates and the proxy of this machine stay. The settings of the program that runs the test do not.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(?!config_cafile)|VITEST|NODE_(ENV|OPTIONS|COMPILE_CACHE))/.test(name),
  )
  const env = {
    ...Object.fromEntries(inherited),
    ...{ HOME: root, XDG_CACHE_HOME: join(root, 'cache'), NO_COLOR: '1' },
    ...{ npm_config_cache: join(root, 'npm'), npm_config_registry: registry },
    ...{ npm_config_update_notifier: 'false', npm_config_fund: 'false' },
    npm_config_userconfig: join(homedir(), '.npmrc'),
  }
  return { folder, env, remove: () => rmSync(root, { recursive: true, force: true }) }
}

/** The result of a command that the user typed. */
export interface Typed {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly seconds: number
}

/** Runs a command as the user. This process serves the registry at the same time. */
export async function typed(
  { folder, env }: NewUser,
  command: string,
  ...args: readonly string[]
): Promise<Typed> {
  const startedAt = performance.now()
  const child = spawn(command, args, { cwd: folder, env, timeout: 120_000 })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.end()
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr, seconds: (performance.now() - startedAt) / 1_000 }
}

export interface Installed {
  readonly packages: readonly string[]
  readonly megabytes: number
}

/** Returns the packages in a folder of npm, and their size on disk as `du` counts it. */
export function installedIn(folder: string): Installed {
  const modules = join(folder, 'node_modules')
  const packages = readdirSync(modules, { recursive: true, encoding: 'utf8' })
    .filter((path) => /(^|node_modules\/)(@[^/]+\/)?[^/@.][^/]*\/package\.json$/.test(path))
    .map((path) => path.slice(0, -'/package.json'.length))
    .filter((path) => !path.slice(path.lastIndexOf('node_modules/') + 1).includes('/dist/'))
  const bytes = readdirSync(modules, { recursive: true, encoding: 'utf8' })
    .map((path) => statSync(join(modules, path)).blocks * 512)
    .reduce((sum, size) => sum + size, 0)
  return { packages, megabytes: bytes / 1_000_000 }
}
