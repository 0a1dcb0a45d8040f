import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyDatabase, freePort, poolOn } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { parse } from 'yaml'
import { afterAll, describe, expect, test } from 'vitest'
import { printConfig, printConfigSchema, validateConfig } from '../src/commands/config.ts'
import { initCommand } from '../src/commands/init.ts'
import { migrateCommand } from '../src/commands/migrate.ts'
import { putBackCommand } from '../src/commands/put-back.ts'
import { serveCommand } from '../src/commands/serve.ts'
import { fail } from '../src/failure.ts'
import type { Io } from '../src/io.ts'

const MAIN = new URL('../src/main.ts', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let folders = 0

function folderWith(files: Readonly<Record<string, string>> = {}): string {
  const made = mkdtempSync(join(folder, `${folders++}-`))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(made, name), content)
  return made
}

interface WorldOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** The answer of the user to a prompt. Undefined: there is no terminal. */
  readonly answers?: boolean
  readonly signal?: AbortSignal
}

/** Returns an environment for one command, and its output. */
function world({ cwd, env = {}, answers, signal = new AbortController().signal }: WorldOptions) {
  const out = { stdout: '', stderr: '', questions: [] as string[] }
  const isTTY = answers !== undefined
  const output = (name: 'stdout' | 'stderr') => ({
    write: (text: string) => void (out[name] += text),
    isTTY,
    columns: 120,
    hasColor: false,
  })
  const io: Io = {
    stdout: output('stdout'),
    stderr: output('stderr'),
    stdin: { isTTY, lines: () => nothing() },
    env,
    cwd,
    now: Date.now,
    sleep: async () => undefined,
    fetch: globalThis.fetch,
    signal,
    outliveReader: () => undefined,
    confirm: async (question) => {
      out.questions.push(question)
      return answers
    },
    edit: async () => 0,
  }
  const run = (work: (io: Io) => Promise<number>) =>
    work(io).catch((error: unknown) => fail(io, error, false))
  return { out, run }
}

async function* nothing(): AsyncGenerator<string> {}

const CONFIG = `
database: { url: "\${DATABASE_URL}" }
auth: { development: {} }
sources: { orders: { rabbitmq: { url: amqp://app:hunter2@mq.example, queue: orders } } }
`
const env = { DATABASE_URL: 'postgres://redrive:hunter2@db.example/redrive' }

describe('redrive config', () => {
  test('validate reports a valid config and its sources', async () => {
    const { out, run } = world({ cwd: folderWith({ 'redrive.config.yaml': CONFIG }), env })
    expect(await run((io) => validateConfig(io, {}))).toBe(0)
    expect(out).toMatchObject({
      stdout: 'redrive.config.yaml is valid: 1 source, orders.\n',
      stderr: '',
    })
  })

  test('validate lists all problems on stderr and exits with 2', async () => {
    const wrong = `${CONFIG}listen: nowhere\n`
    const { out, run } = world({ cwd: folderWith({ 'redrive.config.yaml': wrong }) })
    expect(await run((io) => validateConfig(io, {}))).toBe(2)
    expect(out.stdout).toBe('')
    expect(out.stderr.split('\n')).toEqual([
      'Error: redrive.config.yaml is not valid:',
      '- database.url: the placeholder ${DATABASE_URL} has no value. Set DATABASE_URL, or set DATABASE_URL_FILE to the path of a file with the value.',
      "- listen: expected an address and a port, such as '127.0.0.1:8080'",
      '',
    ])
  })

  test('print shows the config with defaults and without secrets', async () => {
    const cwd = folderWith({ 'redrive.config.yaml': CONFIG })
    const { out, run } = world({ cwd, env })
    expect(await run((io) => printConfig(io, {}))).toBe(0)
    expect(out.stdout).not.toContain('hunter2')
    expect(parse(out.stdout)).toMatchObject({
      database: { url: 'postgres://***@db.example/redrive', connections: 14 },
      listen: '127.0.0.1:8080',
      shutdown: { grace: '25s' },
      sources: { orders: { rabbitmq: { url: 'amqp://***@mq.example', queue: 'orders' } } },
    })
  })

  test('schema prints the JSON Schema for editors', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run(printConfigSchema)).toBe(0)
    expect(JSON.parse(out.stdout)).toMatchObject({ title: 'Redrive', type: 'object' })
  })
})

describe('redrive init', () => {
  const files = () => ({
    'package.json': JSON.stringify({ dependencies: { amqplib: '1', kafkajs: '2', pg: '8' } }),
  })

  test('shows a diff, prompts, and writes a valid config', async () => {
    const cwd = folderWith(files())
    const given = { AMQP_URL: 'amqp://app:hunter2@mq', KAFKA_BROKERS: 'k:9092', ...env }
    const { out, run } = world({ cwd, env: given, answers: true })
    expect(await run((io) => initCommand(io, {}))).toBe(0)
    expect(out.questions).toEqual(['Write redrive.config.yaml?'])
    expect(out.stderr).toContain(
      'Found amqplib in package.json.\nFound AMQP_URL in the environment.\n',
    )
    expect(out.stderr).toContain('+++ redrive.config.yaml\n')
    expect(out.stderr).toContain('+      url: ${AMQP_URL}\n')
    const written = readFileSync(join(cwd, 'redrive.config.yaml'), 'utf8')
    expect(written).not.toContain('hunter2')
    expect(Object.keys((parse(written) as { sources: object }).sources)).toEqual([
      'orders',
      'clicks',
    ])
    expect(await world({ cwd, env: given }).run((io) => validateConfig(io, {}))).toBe(0)
  })

  test('writes a valid example when it finds no broker', async () => {
    const cwd = folderWith()
    const { out, run } = world({ cwd })
    expect(await run((io) => initCommand(io, { yes: true }))).toBe(0)
    expect(out.stderr).toContain(
      'Found no broker in package.json, the source files or the environment',
    )
    expect(await world({ cwd, env }).run((io) => validateConfig(io, {}))).toBe(0)
  })

  test('fails instead of prompting without a terminal', async () => {
    const cwd = folderWith(files())
    const { out, run } = world({ cwd })
    expect(await run((io) => initCommand(io, {}))).toBe(2)
    expect(out.stderr).toContain('Cannot prompt without a terminal. Add --yes to confirm.')
    expect(readdirSync(cwd)).toEqual(['package.json'])
  })

  test.each([
    ['the prompt is declined', { answers: false }, {}, 1],
    ['it is a dry run', {}, { dryRun: true }, 0],
  ] as const)('writes nothing when %s', async (_, terminal, options, code) => {
    const cwd = folderWith(files())
    const { run } = world({ cwd, ...terminal })
    expect(await run((io) => initCommand(io, options))).toBe(code)
    expect(readdirSync(cwd)).toEqual(['package.json'])
  })

  test.each(['redrive.config.yaml', 'redrive.config.ts'])(
    'never changes an existing %s',
    async (name) => {
      const cwd = folderWith({ [name]: 'mine' })
      const { out, run } = world({ cwd })
      expect(await run((io) => initCommand(io, { yes: true }))).toBe(5)
      expect(out.stderr).toBe(
        `Error: ${name} already exists and was not changed. Print it with: redrive config print\n`,
      )
      expect(readdirSync(cwd)).toEqual([name])
      expect(readFileSync(join(cwd, name), 'utf8')).toBe('mine')
    },
  )
})

/** Returns a folder with the config of a server without sources. */
const folderServing = (port: number, migrate = 'migrate: false') =>
  folderWith({
    'redrive.config.yaml': `
database: { url: "\${DATABASE_URL}" }
auth: { development: {} }
listen: 127.0.0.1:${port}
shutdown: { grace: 5s, readinessDelay: 0ms }
${migrate}
sources: {}
`,
  })

describe('redrive migrate and redrive serve', () => {
  test('migrate a database, and serve until a signal arrives', async () => {
    const DATABASE_URL = await emptyDatabase('redrive_cli_serve')
    const port = await freePort()
    const cwd = folderServing(port)
    const options = { cwd, env: { DATABASE_URL } }

    const dry = world(options)
    expect(await dry.run((io) => migrateCommand(io, { dryRun: true }))).toBe(0)
    expect(dry.out.stdout).toMatch(/^Would apply redrive 0001-outbox\n/)
    expect(dry.out.stdout).toContain('Would apply redrive_server 0001-tables\n')

    const early = world(options)
    expect(await early.run((io) => serveCommand(io, { role: ['api'] }))).toBe(1)
    expect(early.out.stderr).toContain('Run `redrive migrate`, or set migrate: true.')

    const first = world(options)
    expect(await first.run((io) => migrateCommand(io, { json: true }))).toBe(0)
    const { applied } = JSON.parse(first.out.stdout) as { applied: readonly string[] }
    expect(applied).toEqual(
      dry.out.stdout
        .trim()
        .split('\n')
        .map((line) => line.slice(12)),
    )
    const again = world(options)
    expect(await again.run((io) => migrateCommand(io, {}))).toBe(0)
    expect(again.out.stdout).toBe('Everything is up to date.\n')

    const ending = new AbortController()
    const server = world({ ...options, signal: ending.signal })
    const served = server.run((io) => serveCommand(io, { role: ['api'] }))
    await until('the server is ready', () => server.out.stdout.includes('"msg":"Serving api."'))
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([200, 'ok\n'])
    ending.abort()
    expect(await served).toBe(0)
    expect(server.out.stdout).toContain('"msg":"Stopped."')
  })

  test('exit with 0 after SIGTERM', async () => {
    const DATABASE_URL = await emptyDatabase('redrive_cli_process')
    const cwd = folderServing(await freePort(), 'migrate: true')
    const args = ['--conditions=@redrive/source', '--no-warnings', MAIN, 'serve', '--role', 'watch']
    const child = spawn(process.execPath, args, { cwd, env: { DATABASE_URL } })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => void (output += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => void (output += chunk.toString()))
    const closed = once(child, 'close')
    await until('the server is ready', () => output.includes('"msg":"Serving watch."'))
    child.kill('SIGTERM')
    expect([await closed, output.includes('"msg":"Stopped."')]).toEqual([[0, null], true])
  })

  test('continue when the reader of the log closes', async () => {
    const DATABASE_URL = await emptyDatabase('redrive_cli_log')
    const port = await freePort()
    const cwd = folderServing(port, 'migrate: true')
    const args = ['--conditions=@redrive/source', '--no-warnings', MAIN, 'serve', '--role', 'api']
    const child = spawn(process.execPath, args, { cwd, env: { DATABASE_URL } })
    const closed = once(child, 'close')
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => void (output += chunk.toString()))
    await until('the server is ready', () => output.includes('"msg":"Serving api."'))
    child.stdout.destroy()
    child.stderr.destroy()
    // Each request writes a log line, and the reader of the log has closed.
    for (let request = 0; request < 5; request += 1) {
      const { status } = await fetch(`http://127.0.0.1:${port}/api/v1/me`)
      expect(status).toBe(200)
    }
    child.kill('SIGTERM')
    expect(await closed).toEqual([0, null])
  })

  test('print SQL that an administrator can run twice', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run((io) => migrateCommand(io, { printSql: true }))).toBe(0)
    const DATABASE_URL = await emptyDatabase('redrive_cli_sql')
    const pool = poolOn(DATABASE_URL, 1)
    await pool.query(out.stdout)
    await pool.query(out.stdout)
    await pool.end()
    const cwd = folderWith({ 'redrive.config.yaml': CONFIG })
    const after = world({ cwd, env: { DATABASE_URL } })
    expect(await after.run((io) => migrateCommand(io, { dryRun: true }))).toBe(0)
    expect(after.out.stdout).toBe('Everything is up to date.\n')
  })

  test('print privileges for a role that does not own the tables', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run((io) => migrateCommand(io, { printGrants: 'a "role"' }))).toBe(0)
    expect(out.stdout).toContain('redrive_server to "a ""role""";')
    const refused = world({ cwd: folder })
    expect(await refused.run((io) => migrateCommand(io, { printGrants: '' }))).toBe(2)
    expect(refused.out.stderr).toContain('--print-grants: expected the name of a role')
  })

  test('reject an unknown role with exit code 2', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run((io) => serveCommand(io, { role: ['api,cook'] }))).toBe(2)
    expect(out.stderr).toBe(
      "Error: --role: expected one or more of api, ingest, replay, watch, got 'cook'.\n",
    )
  })

  test('reject an unknown log level before anything else', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run((io) => serveCommand(io, { logLevel: 'loud' }))).toBe(2)
    expect(out.stderr).toContain('--log-level: expected one of trace, debug, info')
  })
})

describe('put-back', () => {
  const config = JSON.stringify({
    database: { url: 'postgres://nobody@127.0.0.1:1/none' },
    auth: { development: {} },
    sources: { orders: { postgres: { queue: 'orders' } } },
  })

  test('changes nothing without --yes or an answer', async () => {
    const cwd = folderWith({ 'redrive.config.json': config })
    for (const answers of [undefined, false]) {
      const { out, run } = world({ cwd, ...(answers === undefined ? {} : { answers }) })
      expect(await run((io) => putBackCommand(io, 'orders', {}))).toBe(2)
      expect(out.stderr).toMatch(/Nothing was changed\. .*: add --yes\./)
    }
  })

  test('rejects a source that the config does not have, and lists those it has', async () => {
    const cwd = folderWith({ 'redrive.config.json': config })
    const { out, run } = world({ cwd })
    expect(await run((io) => putBackCommand(io, 'oders', { yes: true }))).toBe(2)
    expect(out.stderr).toContain('The config has no source "oders". Its sources: orders.')
  })
})
