import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get as httpGet, type IncomingMessage } from 'node:http'
import { createServer, connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json as readJson } from 'node:stream/consumers'
import { emptyDatabase, freePort, poolOn, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, afterEach } from 'vitest'
import { migrateAll } from '../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-serve-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const SCRIPT = new URL('./serve-process.ts', import.meta.url).pathname
const running: ServerProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.kill()))
})

/** Creates a migrated database and a base config for it. */
export async function serveDatabase(name: string) {
  const url = await emptyDatabase(name)
  const pool = poolOn(url)
  afterAll(() => pool.end())
  await migrateAll(pool)
  // Short, because there is no load balancer that must notice the shutdown.
  const shutdown = { grace: '10s', readinessDelay: '300ms' }
  const auth = { development: {} }
  return { url, pool, base: { database: { url }, auth, sources: {}, approval: 'anyone', shutdown } }
}

export async function rabbitmqUrl(): Promise<string> {
  return urlOf('rabbitmq', 'amqp')
}

/** Starts a TCP proxy to another port. */
export async function forwarding(
  port: number,
  to: { host: string; port: number },
): Promise<Server> {
  const server = createServer((socket) => {
    const other = connect(to)
    for (const one of [socket, other]) one.on('error', () => undefined)
    socket.pipe(other).pipe(socket)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** A server in a separate process. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly url: string
  readonly exited: Promise<number | null>
  output = ''

  constructor(config: object, { roles = '', port }: { roles?: string; port: number }) {
    const file = join(folder, `${port}.json`)
    writeFileSync(file, JSON.stringify({ listen: `127.0.0.1:${port}`, ...config }))
    this.url = `http://127.0.0.1:${port}`
    this.#child = spawn(
      process.execPath,
      ['--conditions=@redrive/source', '--no-warnings', SCRIPT, file, roles],
      { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder },
    )
    const add = (chunk: Buffer) => {
      this.output += chunk.toString()
    }
    this.#child.stdout?.on('data', add)
    this.#child.stderr?.on('data', add)
    this.exited = once(this.#child, 'close').then(([code]) => code as number | null)
    running.push(this)
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.exited
  }

  /** Resolves when the output contains this text. */
  async waitForOutput(text: string): Promise<this> {
    let hasExited = false
    void this.exited.finally(() => {
      hasExited = true
    })
    // A busy machine needs more than the usual 25 s to start a server.
    await until(`"${text}" in the output`, () => this.output.includes(text) || hasExited, {
      timeout: '1m',
    })
    if (this.output.includes(text)) return this
    throw new Error(`The server exited without the output "${text}":\n${this.output}`)
  }

  get(path: string): Promise<Response> {
    return fetch(`${this.url}${path}`)
  }

  /** Sends a GET request and keeps the connection open, as proxies do. */
  async getKeepAlive(path: string): Promise<{ status: number | undefined; body: unknown }> {
    const [response] = (await once(
      httpGet(`${this.url}${path}`, { agent: new Agent({ keepAlive: true }) }),
      'response',
    )) as [IncomingMessage]
    return { status: response.statusCode, body: await readJson(response) }
  }

  async json<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'idempotency-key': crypto.randomUUID(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
}

/** Starts a server and waits until it serves. */
export async function serving(config: object, roles?: string): Promise<ServerProcess> {
  const port = await freePort()
  const server = new ServerProcess(config, { port, ...(roles === undefined ? {} : { roles }) })
  return server.waitForOutput('"msg":"Serving ')
}

/** Starts a server that is expected to fail. Returns its exit code and output. */
export async function failedStart(
  config: object,
): Promise<{ code: number | null; output: string }> {
  const server = new ServerProcess(config, { port: await freePort() })
  const code = await server.exited
  return { code, output: server.output }
}
