import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { classify, type Failure } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'

export const AT = 1_700_000_000_123
export const never: AbortSignal = new AbortController().signal

export const event = (given: Partial<OutboundEvent> = {}): OutboundEvent => ({
  id: '0190a5f0-0000-7000-8000-000000000001',
  key: 'order-42',
  type: 'order.placed',
  lane: 'customer-7',
  at: AT,
  bytes: Buffer.from('{"order":42}'),
  contentType: 'application/json',
  headers: {},
  ...given,
})

/** A request as it arrived, unpacked. */
export interface Arrived {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Where it came from, and to which of our addresses. */
  readonly port: number | undefined
  readonly address: string | undefined
}

export type Answer = (response: ServerResponse, arrived: Arrived) => void

export const answer =
  (status: number, body = '', headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, headers).end(body)
  }

/** A server of the test's own. Answers come in the order they are given; the last one stays. */
export class TestServer {
  readonly arrived: Arrived[] = []
  readonly server: Server
  answers: Answer[] = []

  constructor(server: Server = createServer()) {
    this.server = server
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void this.#take(request, response)
    })
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const sent = Buffer.concat(chunks)
    const isPacked = request.headers['content-encoding'] === 'gzip'
    const arrived: Arrived = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: isPacked ? gunzipSync(sent) : sent,
      port: request.socket.remotePort,
      address: request.socket.localAddress,
    }
    this.arrived.push(arrived)
    const [next] = this.answers.length > 1 ? [this.answers.shift()] : this.answers
    next?.(response, arrived)
  }

  async listen(host = '127.0.0.1'): Promise<this> {
    this.server.listen(0, host)
    await once(this.server, 'listening')
    return this
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The first body. */
  get text(): string {
    return this.arrived[0]?.body.toString() ?? ''
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }
}

/** Runs with a server that answers so, and ends both whatever happens. */
export async function onServer(
  answers: Answer | readonly Answer[],
  open: (server: TestServer) => Sink,
  test: (sink: Sink, server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await new TestServer().listen()
  server.answers = typeof answers === 'function' ? [answers] : [...answers]
  try {
    const sink = open(server)
    try {
      await test(sink, server)
    } finally {
      await sink.close()
    }
  } finally {
    await server.close()
  }
}

/** What it was refused with. */
export async function refusal(work: Promise<unknown>): Promise<Error> {
  try {
    await work
  } catch (error) {
    return error as Error
  }
  throw new Error('Expected to be refused.')
}

/** What the runtime makes of it. */
export async function failureOf(work: Promise<unknown>, now: number = AT): Promise<Failure> {
  const error = await refusal(work)
  return classify(error, { rules: [], handler: 'sink', includeStack: false, now })
}

/** What a constructor refuses. */
export function problemsOf(make: () => unknown): readonly string[] {
  try {
    make()
  } catch (error) {
    return (error as { readonly problems: readonly string[] }).problems
  }
  return []
}
