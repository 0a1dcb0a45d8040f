/**
 * Compiles and runs a program in every kind of project: versions of TypeScript, settings of `module`,
 * versions of Node, test runners and bundlers. docs/projects.md has the result.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packPackages, ROOT } from '@redrive/dev-support'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const PROJECTS = join(import.meta.dirname, 'projects')
const PACKAGES = [
  ...['alerts', 'api', 'catalog', 'core', 'doctor', 'fastify', 'nestjs', 'postgres-internal'],
  ...['redis-internal', 'runtime', 'sinks', 'storm', 'telemetry', 'testing'],
  ...['file', 'postgres', 'redis'].map((name) => `stores/${name}`),
  ...['kafka', 'memory', 'nats', 'postgres', 'rabbitmq', 'redis', 'sqs'].map(
    (name) => `transports/${name}`,
  ),
].map((name) => `packages/${name}`)
const CLIENTS = [
  ...['@types/node@22', 'amqplib@2', '@platformatic/kafka@2', 'kafkajs@2', 'pg@8', '@types/pg@8'],
  ...['ioredis@6', '@redis/client@6', '@nats-io/jetstream@3', '@nats-io/transport-node@3'],
  ...['fastify@5', '@nestjs/common@12', '@nestjs/core@12', '@nestjs/microservices@12'],
  ...['reflect-metadata@0.2', 'rxjs@7', '@opentelemetry/api@1', '@aws-sdk/client-sqs@3'],
]
const TOOLS = ['jest@30', '@swc/core@1', '@swc/jest@0.2', 'vitest@5', 'esbuild@0.28', 'webpack@5']

/** The oldest supported Node, the one of this repository, and the newest with a binary in npm. */
const NODES = ['22.12.0', '24', '26'] as const
const OLDEST = '5.5'
const NEWEST = '7.0'
const BETWEEN = ['5.6', '5.7', '5.8', '5.9', '6.0']

interface Setting {
  readonly name: string
  readonly type: 'module' | 'commonjs'
  readonly options: object
  readonly versions: readonly string[]
  /** The only error, in versions that cannot compile this. */
  readonly error?: { readonly code: string; readonly versions: readonly string[] }
}

const since = (first: string) => [OLDEST, ...BETWEEN, NEWEST].filter((version) => version >= first)
const until = (last: string) => [OLDEST, ...BETWEEN].filter((version) => version <= last)

const SETTINGS: readonly Setting[] = [
  { name: 'nodenext', type: 'module', options: { module: 'nodenext' }, versions: since(OLDEST) },
  {
    ...{ name: 'nodenext in CommonJS', type: 'commonjs', options: { module: 'nodenext' } },
    ...{ versions: since(OLDEST), error: { code: 'TS1479', versions: until('5.7') } },
  },
  { name: 'node20', type: 'module', options: { module: 'node20' }, versions: since('5.9') },
  {
    ...{ name: 'node20 in CommonJS', type: 'commonjs', options: { module: 'node20' } },
    versions: since('5.9'),
  },
  {
    ...{ name: 'bundler', type: 'module', versions: since(OLDEST) },
    options: { module: 'esnext', moduleResolution: 'bundler' },
  },
  {
    ...{ name: 'commonjs with node10', type: 'commonjs', versions: until('5.9') },
    options: { module: 'commonjs', moduleResolution: 'node10' },
  },
  {
    ...{ name: 'commonjs with node10', type: 'commonjs', versions: ['6.0'] },
    options: { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0' },
  },
  {
    ...{ name: 'commonjs with bundler', type: 'commonjs', versions: since('6.0') },
    options: { module: 'commonjs', moduleResolution: 'bundler' },
  },
]

const folder = mkdtempSync(join(tmpdir(), 'redrive-matrix-'))
const binary = (name: string) => join(folder, 'node_modules', name)
const nodeOf = (version: string) => binary(`node${version}/bin/node`)

function run(command: string, ...args: readonly string[]) {
  const options = { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const
  return spawnSync(command, args, options)
}

/** Runs a program and returns what it prints, or its error. */
function printed(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = run(command, ...args)
  return status === 0 ? stdout : `exit status ${status}: ${stdout}${stderr}`
}

const onEveryNode = (...args: readonly string[]) =>
  Object.fromEntries(NODES.map((version) => [version, printed(nodeOf(version), ...args)]))

const everyNode = (output: unknown) => Object.fromEntries(NODES.map((version) => [version, output]))

const SERVICE = 'paid in attempt 2, dead letters: 1\n'

/** Returns every entry that users import. */
const entries: readonly string[] = PACKAGES.filter((path) => !path.endsWith('-internal')).flatMap(
  (path) => {
    const { name, exports } = JSON.parse(
      readFileSync(join(ROOT, path, 'package.json'), 'utf8'),
    ) as {
      readonly name: string
      readonly exports: object
    }
    return Object.keys(exports)
      .filter((entry) => entry !== './internal')
      .map((entry) => `${name}${entry.slice(1)}`)
  },
)
const ENTRIES_PROGRAM = `${entries.map((entry, at) => `import * as e${at} from '${entry}'`).join('\n')}
const all: object[] = [${entries.map((_, at) => `e${at}`).join()}]
console.log(all.filter((entry) => Object.keys(entry).length > 0).length)
`

beforeAll(() => {
  const packed = packPackages(PACKAGES)
  const compilers = [OLDEST, ...BETWEEN, NEWEST].map((one) => `ts${one}@npm:typescript@${one}`)
  const platform = `${process.platform}-${process.arch}`
  const nodes = NODES.map((version) => `node${version}@npm:node-${platform}@${version}`)
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  writeFileSync(join(folder, 'package.json'), '{}')
  const names = [...packed.tarballs, ...CLIENTS, ...TOOLS, ...compilers, ...nodes]
  const { status, stderr } = run('npm', ...install, ...names)
  packed.remove()
  if (status !== 0) throw new Error(`npm install failed:\n${stderr}`)
  for (const file of ['service.ts', 'orders.ts'])
    copyFileSync(join(PROJECTS, file), join(folder, file))
  writeFileSync(join(folder, 'entries.ts'), ENTRIES_PROGRAM)
}, 900_000)
afterAll(() => rmSync(folder, { recursive: true }))

/** Compiles files in a project with these settings; returns the errors in them and in our declarations. */
function compile(version: string, setting: Setting, files: readonly string[]): readonly string[] {
  const project = join(folder, 'project')
  rmSync(project, { recursive: true, force: true })
  mkdirSync(project)
  for (const file of files) copyFileSync(join(folder, file), join(project, file))
  const compilerOptions = {
    ...{ strict: true, target: 'es2022', types: ['node'], rootDir: '.', outDir: 'out' },
    ...{ skipLibCheck: false, ...setting.options },
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: setting.type }))
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  const tsc = binary(`ts${version}/bin/tsc`)
  const { stdout } = run(process.execPath, tsc, '-p', project, '--pretty', 'false')
  return stdout
    .split('\n')
    .filter((line) => line.includes('error TS'))
    .filter((line) => !/node_modules\/(?!@redrive\/)/.test(line) && !isOfClient(line, setting))
}

/** The client of NATS has no types for the resolution node10. */
const isOfClient = (line: string, { name }: Setting) =>
  name === 'commonjs with node10' && line.includes('@redrive/nats/')

describe.each(SETTINGS)('$name', (setting) => {
  it.each(setting.versions)(
    'compiles with TypeScript %s and runs on every Node',
    (version) => {
      const isEdge = [OLDEST, NEWEST].includes(version)
      const files = isEdge ? ['service.ts', 'entries.ts'] : ['service.ts']
      const errors = compile(version, setting, files)
      const expected = setting.error?.versions.includes(version) ? setting.error.code : undefined
      expect(errors.filter((line) => !line.includes(`error ${expected}:`))).toEqual([])
      expect(errors.length > 0).toBe(expected !== undefined)
      const outputs = files.map((file) => onEveryNode(`project/out/${file.replace('.ts', '.js')}`))
      const lines = [SERVICE, `${entries.length}\n`].slice(0, files.length)
      expect(outputs).toEqual(lines.map(everyNode))
    },
    300_000,
  )
})

/** Returns the block of docs/projects.md after `<!-- file: NAME -->`. */
function documented(name: string): string {
  const page = readFileSync(join(ROOT, 'docs/projects.md'), 'utf8')
  const [, text] = page.split(`<!-- file: ${name} -->`)[1]?.match(/```\w*\n([\s\S]*?)```/) ?? []
  if (text === undefined) throw new Error(`docs/projects.md does not show ${name}`)
  return text
}

describe('test runners', () => {
  it('passes a test in Jest with the documented configuration', () => {
    writeFileSync(join(folder, 'jest.config.cjs'), documented('jest.config.cjs'))
    copyFileSync(join(folder, 'orders.ts'), join(folder, 'orders.test.ts'))
    for (const version of NODES) {
      const { stderr } = run(nodeOf(version), binary('jest/bin/jest.js'), 'orders.test.ts')
      expect(`Node ${version}: ${stderr}`).toMatch(/Tests: +1 passed, 1 total/)
    }
  }, 300_000)

  it('passes a test in Vitest without a configuration', () => {
    copyFileSync(join(folder, 'orders.ts'), join(folder, 'orders.test.ts'))
    for (const version of NODES) {
      const vitest = [binary('vitest/vitest.mjs'), 'run', '--globals', 'orders.test.ts']
      const output = printed(nodeOf(version), ...vitest)
      expect(`Node ${version}: ${output}`).toMatch(/Tests .*1 passed/)
    }
  }, 300_000)
})

describe('bundlers', () => {
  it.each(['esm', 'cjs'])(
    'runs a bundle of esbuild as %s',
    (format) => {
      const file = `service.${format === 'esm' ? 'mjs' : 'cjs'}`
      const options = ['--bundle', '--platform=node', `--format=${format}`, `--outfile=${file}`]
      const { status, stderr } = run(binary('.bin/esbuild'), 'service.ts', ...options)
      expect({ status, stderr: stderr.includes('rror') }).toEqual({ status: 0, stderr: false })
      expect(onEveryNode(file)).toEqual(everyNode(SERVICE))
    },
    300_000,
  )

  it('runs a bundle of webpack', () => {
    writeFileSync(join(folder, 'bundle.cjs'), WEBPACK)
    expect(printed(process.execPath, 'bundle.cjs')).toBe('')
    expect(onEveryNode('dist/main.js')).toEqual(everyNode(SERVICE))
  }, 300_000)
})

/** Node has removed the types: webpack needs a loader for them, which this proof does not test. */
const WEBPACK = `const { readFileSync, writeFileSync } = require('node:fs')
const { stripTypeScriptTypes } = require('node:module')
process.removeAllListeners('warning')
writeFileSync('bundled.mjs', stripTypeScriptTypes(readFileSync('service.ts', 'utf8')))
require('webpack')({
  mode: 'production', target: 'node', entry: './bundled.mjs', output: { path: __dirname + '/dist' },
}, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString())
})
`
