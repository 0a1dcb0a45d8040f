// The receivers on this machine: a log store, a partner's endpoint, and the shown part of the
// output.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'

/** The received events by id; a duplicate counts once. */
export interface Receiver {
  readonly ids: ReadonlySet<string>
}

/** A server that can be stopped and restarted on the same port. */
abstract class LocalServer {
  #server: Server | undefined
  #port = 0

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  async up(): Promise<void> {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.writeHead(400).end())
    }).listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  down(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    response.writeHead(this.take(request, body)).end()
  }

  /** Handles a request and returns the response status. */
  protected abstract take(request: IncomingMessage, body: string): number
}

interface Push {
  readonly streams: readonly {
    readonly values: readonly (readonly [string, string, { readonly id: string }])[]
  }[]
}

/** Implements the part of Loki's API that the sink uses. */
export class LogStore extends LocalServer implements Receiver {
  readonly ids: Set<string> = new Set()

  protected override take({ method, url }: IncomingMessage, body: string): number {
    if (method === 'GET') return url === '/ready' ? 200 : 404
    const { streams } = JSON.parse(body) as Push
    for (const [, , { id }] of streams.flatMap(({ values }) => values)) this.ids.add(id)
    return 204
  }
}

/** 5 minutes: an older request may be a recording that an attacker sends again. */
const TOLERANCE_S = 300

/** A partner that accepts only signed events. */
export class Partner extends LocalServer implements Receiver {
  readonly ids: Set<string> = new Set()
  refused = 0
  readonly #key: Buffer

  constructor(secret: string) {
    super()
    this.#key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  }

  protected override take({ method, headers }: IncomingMessage, body: string): number {
    if (method === 'HEAD') return 204
    const id = String(headers['webhook-id'])
    const timestamp = String(headers['webhook-timestamp'])
    const isRecent = Math.abs(Date.now() / 1_000 - Number(timestamp)) < TOLERANCE_S
    const mac = createHmac('sha256', this.#key).update(`${id}.${timestamp}.${body}`)
    const wanted = Buffer.from(`v1,${mac.digest('base64')}`)
    const isSigned = String(headers['webhook-signature'])
      .split(' ')
      .some(
        (given) => given.length === wanted.length && timingSafeEqual(Buffer.from(given), wanted),
      )
    if (isRecent && isSigned) this.ids.add(id)
    else this.refused += 1
    return isRecent && isSigned ? 204 : 401
  }
}

/** Standard output. It shows the first line of each chapter and counts the others. */
export class Output extends Writable implements Receiver {
  readonly ids: Set<string> = new Set()
  isFirst = true

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    for (const line of chunk.toString().trim().split('\n')) {
      this.ids.add((JSON.parse(line) as { id: string }).id)
      if (this.isFirst) console.log(`   stdout: ${line.slice(0, 100)}…`)
      this.isFirst = false
    }
    done()
  }
}
