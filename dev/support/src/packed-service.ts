import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { ROOT } from './services.ts'

/** Packages as they are published, in a temporary folder. */
export interface PackedPackages {
  readonly tarballs: readonly string[]
  remove(): void
}

/** Returns the folders of the packages that `redrive dev` needs: the command line, the server and what it depends on. */
export const controlPlane = (): readonly string[] =>
  withDependencies(['packages/cli', 'packages/server'])

/** Returns these folders and those of the packages of this repository that they depend on. */
function withDependencies(folders: readonly string[]): readonly string[] {
  const found = new Set(folders)
  // The loop also reaches the folders that it adds.
  for (const folder of found) {
    const manifest = readFileSync(join(ROOT, folder, 'package.json'), 'utf8')
    const { dependencies = {} } = JSON.parse(manifest) as Manifest
    for (const [name, version] of Object.entries(dependencies)) {
      if (!version.startsWith('workspace:')) continue
      found.add(relative(ROOT, realpathSync(join(ROOT, folder, 'node_modules', name))))
    }
  }
  return [...found]
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
}

/** Builds and packs packages; `folders` are relative to the root of the repository. */
export function packPackages(folders: readonly string[]): PackedPackages {
  const to = mkdtempSync(join(tmpdir(), 'redrive-packed-'))
  run(ROOT, 'pnpm', 'exec', 'tsc', '-b')
  if (folders.includes('packages/server')) run(join(ROOT, 'packages/console'), 'pnpm', 'build')
  const tarballs = folders.map((folder) => {
    const tarball = join(to, `${folder.replaceAll('/', '-')}.tgz`)
    run(join(ROOT, folder), 'pnpm', 'pack', '--out', tarball)
    return tarball
  })
  return { tarballs, remove: () => rmSync(to, { recursive: true }) }
}

/** A service as a user has it: a TypeScript file in an empty folder, with packages from npm. */
export interface InstalledService {
  /** The path of the TypeScript file. */
  readonly file: string
  readonly args: readonly string[]
  /** The packages to install: tarballs, and names with versions. */
  readonly packages: readonly string[]
  /** Packages that must not be installed with them. */
  readonly without?: readonly string[]
}

export interface ServiceResult {
  /** The warnings of npm. */
  readonly warnings: readonly string[]
  /** The packages of `without` that npm installed. */
  readonly unwanted: readonly string[]
  readonly printed: string
}

const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, target: 'es2023', lib: ['es2024'], types: ['node'] },
    ...{ module: 'nodenext', verbatimModuleSyntax: true, skipLibCheck: false },
  },
  include: ['*.ts'],
}
const INSTALL = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=warn']

/** Installs the packages with npm, compiles the service under `strict` and runs it. Throws when a step fails. */
export function runInstalled(service: InstalledService): ServiceResult {
  const { file, args, packages, without = [] } = service
  const folder = mkdtempSync(join(tmpdir(), 'redrive-service-'))
  try {
    copyFileSync(file, join(folder, basename(file)))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
    const { stderr } = run(folder, 'npm', ...INSTALL, ...packages, '@types/node@24')
    run(folder, join(ROOT, 'node_modules/.bin/tsc'), '-p', folder)
    return {
      warnings: warningsIn(stderr),
      unwanted: without.filter((name) => existsSync(join(folder, 'node_modules', name))),
      // Without stderr: some clients cause warnings of Node.
      printed: run(folder, process.execPath, basename(file), ...args).stdout,
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A setting of the machine that npm does not know says nothing about the packages. */
const warningsIn = (output: string) =>
  output.split('\n').filter((line) => line.startsWith('npm ') && !/Unknown .* config/.test(line))

/** Runs a command and returns its output; throws with the output when it fails. */
function run(folder: string, command: string, ...args: readonly string[]) {
  // The variable of the test runner would change what Vite builds.
  const env = { ...process.env, NODE_ENV: 'production' }
  const { status, stdout, stderr } = spawnSync(command, args, {
    ...{ cwd: folder, env, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  })
  if (status === 0) return { stdout, stderr }
  throw new Error(`${command} ${args[0] ?? ''} failed:\n${stdout}${stderr}`)
}
