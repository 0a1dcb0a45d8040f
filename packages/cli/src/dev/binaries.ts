import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError, EXIT } from '../exit.ts'
import { downloadsFolder, storeDownload } from '../downloads.ts'
import type { Environment } from '../io.ts'
import { type Account, canUse } from './account.ts'
import { runNpm } from '../npm.ts'
import { BINARIES_VERSION, type BinaryPackage } from './platforms.ts'

/** The programs of PostgreSQL, and the user that runs them. */
export interface Binaries {
  readonly initdb: string
  readonly pgCtl: string
  readonly postgres: string
  readonly account: Account | undefined
}

/** Finds installed binaries that one of the users can run. */
export function findBinaries(
  wanted: BinaryPackage,
  accounts: readonly (Account | undefined)[],
  env: Environment,
): Binaries | undefined {
  const folders = [installedFolder(wanted.name), packageIn(cacheFolder(env), wanted)]
  for (const folder of folders) {
    if (folder === undefined || !isComplete(folder) || !linkLibraries(folder)) continue
    const account = accounts.find((one) => canUse(one, programIn(folder, 'postgres')))
    if (account === undefined && !accounts.includes(undefined)) continue
    return {
      initdb: programIn(folder, 'initdb'),
      pgCtl: programIn(folder, 'pg_ctl'),
      postgres: programIn(folder, 'postgres'),
      account,
    }
  }
  return undefined
}

/** Returns whether a folder has the binaries of this release. The files of a database need the same release. */
function isComplete(folder: string): boolean {
  const manifest = join(folder, 'package.json')
  if (!existsSync(manifest) || !existsSync(programIn(folder, 'postgres'))) return false
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version?: string }
  return version === BINARIES_VERSION
}

const programIn = (folder: string, name: string) =>
  join(folder, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name)

/** Returns the folder of a package that is installed next to this one. */
function installedFolder(name: string): string | undefined {
  try {
    // The entry of the package is dist/index.js.
    return dirname(dirname(fileURLToPath(import.meta.resolve(name))))
  } catch {
    // It is not installed. The caller downloads it.
    return undefined
  }
}

interface Link {
  readonly source: string
  readonly target: string
}

/**
 * Creates the links between the libraries. npm packs no links, and the script of the package that creates them
 * does not run by default. Returns false when this user may not write to the folder.
 */
function linkLibraries(folder: string): boolean {
  const list = join(folder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly Link[]
  try {
    for (const { source, target } of links) createLink(basename(source), join(folder, target))
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return false
    throw error
  }
}

/** Creates a link, or replaces one whose target is missing. Another process may do the same at the same time. */
function createLink(target: string, path: string): void {
  if (existsSync(path)) return
  const unfinished = `${path}.${randomUUID()}`
  symlinkSync(target, unfinished)
  renameSync(unfinished, path)
}

/** Downloads the binaries with npm, which uses the registry and the proxy of the user, and checks their hash. */
export async function downloadBinaries(
  wanted: BinaryPackage,
  { env, signal }: { readonly env: Environment; readonly signal: AbortSignal },
): Promise<void> {
  const folder = cacheFolder(env)
  const isReady = () => isComplete(packageIn(folder, wanted))
  await storeDownload({ what: 'PostgreSQL', folder, isReady }, async (unfinished) => {
    writeManifests(unfinished, wanted)
    await install(unfinished, wanted, { env, signal })
    // A temporary folder is private. Root needs it readable for the user that runs PostgreSQL.
    chmodSync(unfinished, 0o755)
    linkLibraries(packageIn(unfinished, wanted))
  })
}

const packageIn = (folder: string, { name }: BinaryPackage) => join(folder, 'node_modules', name)

/** Returns the folder of the downloaded PostgreSQL. */
export const cacheFolder = (env: Environment): string =>
  downloadsFolder(env, `dev-postgresql-${BINARIES_VERSION}`)

/** Writes a project with this package as its only dependency. `npm ci` refuses any other content. */
function writeManifests(folder: string, { name, integrity }: BinaryPackage): void {
  const project = { name: 'redrive-dev-postgresql', version: '1.0.0', private: true }
  const dependencies = { [name]: BINARIES_VERSION }
  const lock = {
    ...{ name: project.name, version: project.version, lockfileVersion: 3, requires: true },
    packages: {
      '': { ...project, dependencies },
      [`node_modules/${name}`]: { version: BINARIES_VERSION, integrity },
    },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...project, dependencies }))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
}

async function install(
  cwd: string,
  { name }: BinaryPackage,
  { env, signal }: { readonly env: Environment; readonly signal: AbortSignal },
): Promise<void> {
  const failure = await runNpm(['ci'], { cwd, env, signal })
  if (failure === undefined) return
  throw new CommandError(
    EXIT.failure,
    `Cannot download PostgreSQL. npm reported:\n${failure}\nCheck the connection to the registry, install it yourself (npm install --ignore-scripts ${name}@${BINARIES_VERSION}), or pass a database that you already have: --database postgres://…`,
  )
}
