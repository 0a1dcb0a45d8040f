import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { parse } from 'yaml'
import { afterAll, describe, expect, test } from 'vitest'
import { printConfig, printConfigSchema, validateConfig } from '../src/commands/config.ts'
import { initCommand } from '../src/commands/init.ts'
import { migrateCommand } from '../src/commands/migrate.ts'
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

interface Said {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** Somebody is there and answers this. */
  readonly answers?: boolean
  readonly signal?: AbortSignal
}

/** A command in a small world, and what came out of it. */
function world({ cwd, env = {}, answers, signal = new AbortController().signal }: Said) {
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
  test('validate says that it is valid, and what is in it', async () => {
    const { out, run } = world({ cwd: folderWith({ 'redrive.config.yaml': CONFIG }), env })
    expect(await run((io) => validateConfig(io, {}))).toBe(0)
    expect(out).toMatchObject({
      stdout: 'redrive.config.yaml is valid: 1 source, orders.\n',
      stderr: '',
    })
  })

  test('validate says everything that is wrong, on stderr, and exits with 2', async () => {
    const wrong = `${CONFIG}listen: nowhere\n`
    const { out, run } = world({ cwd: folderWith({ 'redrive.config.yaml': wrong }) })
    expect(await run((io) => validateConfig(io, {}))).toBe(2)
    expect(out.stdout).toBe('')
    expect(out.stderr.split('\n')).toEqual([
      'Error: redrive.config.yaml cannot be used:',
      '- database.url: the placeholder ${DATABASE_URL} is not set. Set DATABASE_URL, or set DATABASE_URL_FILE to the name of a file that has the value.',
      "- listen: expected an address and a port, such as '127.0.0.1:8080'",
      '',
    ])
  })

  test('print shows it with its defaults and without its secrets', async () => {
    const cwd = folderWith({ 'redrive.config.yaml': CONFIG })
    const { out, run } = world({ cwd, env })
    expect(await run((io) => printConfig(io, {}))).toBe(0)
    expect(out.stdout).not.toContain('hunter2')
    expect(parse(out.stdout)).toMatchObject({
      database: { url: 'postgres://***@db.example/redrive', connections: 20 },
      listen: '127.0.0.1:8080',
      shutdown: { grace: '25s' },
      sources: { orders: { rabbitmq: { url: 'amqp://***@mq.example', queue: 'orders' } } },
    })
  })

  test('schema prints what editors read', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run(printConfigSchema)).toBe(0)
    expect(JSON.parse(out.stdout)).toMatchObject({ title: 'Redrive', type: 'object' })
  })
})

describe('redrive init', () => {
  const files = () => ({
    'package.json': JSON.stringify({ dependencies: { amqplib: '1', kafkajs: '2', pg: '8' } }),
  })

  test('shows what it would write as a diff, asks, and writes a config that is valid', async () => {
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

  test('writes an example where it finds nothing, which is valid too', async () => {
    const cwd = folderWith()
    const { out, run } = world({ cwd })
    expect(await run((io) => initCommand(io, { yes: true }))).toBe(0)
    expect(out.stderr).toContain('Found no broker in package.json or the environment')
    expect(await world({ cwd, env }).run((io) => validateConfig(io, {}))).toBe(0)
  })

  test('does not ask where nobody can answer: it refuses', async () => {
    const cwd = folderWith(files())
    const { out, run } = world({ cwd })
    expect(await run((io) => initCommand(io, {}))).toBe(2)
    expect(out.stderr).toContain('There is no terminal to ask on: add --yes to go on.')
    expect(readdirSync(cwd)).toEqual(['package.json'])
  })

  test.each([
    ['the answer is no', { answers: false }, {}, 1],
    ['it is a dry run', {}, { dryRun: true }, 0],
  ] as const)('writes nothing when %s', async (_, said, options, code) => {
    const cwd = folderWith(files())
    const { run } = world({ cwd, ...said })
    expect(await run((io) => initCommand(io, options))).toBe(code)
    expect(readdirSync(cwd)).toEqual(['package.json'])
  })

  test.each(['redrive.config.yaml', 'redrive.config.ts'])('never touches a %s', async (name) => {
    const cwd = folderWith({ [name]: 'mine' })
    const { out, run } = world({ cwd })
    expect(await run((io) => initCommand(io, { yes: true }))).toBe(5)
    expect(out.stderr).toBe(
      `Error: There is a ${name} already, and it is left as it is. See it with: redrive config print\n`,
    )
    expect(readdirSync(cwd)).toEqual([name])
    expect(readFileSync(join(cwd, name), 'utf8')).toBe('mine')
  })
})

describe('redrive migrate and redrive serve', () => {
  test('bring a database up to date, and serve until they are told to end', async () => {
    const DATABASE_URL = await emptyDatabase('redrive_cli_serve')
    const port = await freePort()
    const config = `
database: { url: "\${DATABASE_URL}" }
auth: { development: {} }
listen: 127.0.0.1:${port}
shutdown: { grace: 5s, notice: 0ms }
sources: {}
`
    const cwd = folderWith({ 'redrive.config.yaml': config })
    const said = { cwd, env: { DATABASE_URL } }

    const dry = world(said)
    expect(await dry.run((io) => migrateCommand(io, { dryRun: true }))).toBe(0)
    expect(dry.out.stdout).toMatch(/^Would apply redrive 0001-outbox\n/)
    expect(dry.out.stdout).toContain('Would apply redrive_server 0001-tables\n')

    const early = world(said)
    expect(await early.run((io) => serveCommand(io, { role: ['api'] }))).toBe(1)
    expect(early.out.stderr).toContain('Run `redrive migrate` once, or say migrate: true.')

    const first = world(said)
    expect(await first.run((io) => migrateCommand(io, { json: true }))).toBe(0)
    const { applied } = JSON.parse(first.out.stdout) as { applied: readonly string[] }
    expect(applied).toEqual(
      dry.out.stdout
        .trim()
        .split('\n')
        .map((line) => line.slice(12)),
    )
    const again = world(said)
    expect(await again.run((io) => migrateCommand(io, {}))).toBe(0)
    expect(again.out.stdout).toBe('Everything is up to date.\n')

    const ending = new AbortController()
    const server = world({ ...said, signal: ending.signal })
    const served = server.run((io) => serveCommand(io, { role: ['api'] }))
    await until('it serves', () => server.out.stdout.includes('"msg":"Serving api."'))
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([200, 'ok\n'])
    ending.abort()
    expect(await served).toBe(0)
    expect(server.out.stdout).toContain('"msg":"Stopped."')
  })

  test('end with 0 as a process, when it is told to end', async () => {
    const DATABASE_URL = await emptyDatabase('redrive_cli_process')
    const config = `
database: { url: "\${DATABASE_URL}" }
auth: { development: {} }
listen: 127.0.0.1:${await freePort()}
shutdown: { grace: 5s, notice: 0ms }
migrate: true
sources: {}
`
    const cwd = folderWith({ 'redrive.config.yaml': config })
    const args = ['--conditions=@redrive/source', '--no-warnings', MAIN, 'serve', '--role', 'watch']
    const child = spawn(process.execPath, args, { cwd, env: { DATABASE_URL } })
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    const closed = once(child, 'close')
    await until('it serves', () => said.includes('"msg":"Serving watch."'))
    child.kill('SIGTERM')
    expect([await closed, said.includes('"msg":"Stopped."')]).toEqual([[0, null], true])
  })

  test('goes on when nobody reads its log any more', async () => {
    const DATABASE_URL = await emptyDatabase('redrive_cli_log')
    const port = await freePort()
    const config = `
database: { url: "\${DATABASE_URL}" }
auth: { development: {} }
listen: 127.0.0.1:${port}
shutdown: { grace: 5s, notice: 0ms }
migrate: true
sources: {}
`
    const cwd = folderWith({ 'redrive.config.yaml': config })
    const args = ['--conditions=@redrive/source', '--no-warnings', MAIN, 'serve', '--role', 'api']
    const child = spawn(process.execPath, args, { cwd, env: { DATABASE_URL } })
    const closed = once(child, 'close')
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    await until('it serves', () => said.includes('"msg":"Serving api."'))
    child.stdout.destroy()
    child.stderr.destroy()
    // Each answer is a line of the log, which is gone.
    for (let asked = 0; asked < 5; asked += 1) {
      const { status } = await fetch(`http://127.0.0.1:${port}/api/v1/me`)
      expect(status).toBe(200)
    }
    child.kill('SIGTERM')
    expect(await closed).toEqual([0, null])
  })

  test('print SQL that an administrator can run, twice', async () => {
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

  test('refuse a role that does not exist with 2', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run((io) => serveCommand(io, { role: ['api,cook'] }))).toBe(2)
    expect(out.stderr).toBe(
      "Error: --role: expected some of api, ingest, replay, watch, got 'cook'.\n",
    )
  })

  test('at a level of the log that there is not is refused before anything else', async () => {
    const { out, run } = world({ cwd: folder })
    expect(await run((io) => serveCommand(io, { logLevel: 'loud' }))).toBe(2)
    expect(out.stderr).toContain('--log-level: expected one of trace, debug, info')
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { readonly port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
