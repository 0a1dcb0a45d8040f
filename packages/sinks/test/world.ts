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
import { refusal } from '@redrive/dev-support'
import type { OutboundEvent, Sink } from '@redrive/runtime'

export { refusal } from '@redrive/dev-support'

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

/** A request as it arrived, decompressed. */
export interface Arrived {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The ports of the client and of our server. */
  readonly port: number | undefined
  readonly address: string | undefined
}

export type Responder = (response: ServerResponse, arrived: Arrived) => void

export const respond =
  (status: number, body = '', headers: Record<string, string> = {}): Responder =>
  (response) => {
    response.writeHead(status, headers).end(body)
  }

/** A separate test server. It sends the responses in the given order; the last one repeats. */
export class TestServer {
  readonly arrived: Arrived[] = []
  readonly server: Server
  responses: Responder[] = []

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
    const [next] = this.responses.length > 1 ? [this.responses.shift()] : this.responses
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

/** Runs one test with a sink that has these options, on a separate server with these responses. */
type RunOnSink<Options> = (
  options: Partial<Options>,
  test: (sink: Sink, server: TestServer) => Promise<void>,
  responses?: Responder | readonly Responder[],
) => Promise<void>

/** Returns a function that runs a test on a sink. Without other responses, the server accepts all. */
export const onSink =
  <Options>(
    accept: Responder,
    open: (url: string, options: Partial<Options>) => Sink,
  ): RunOnSink<Options> =>
  (options, test, responses = accept) =>
    onServer(responses, ({ url }) => open(url, options), test)

/** Sends these events and returns the first request that arrived. */
export async function arrivedOf(
  sink: Sink,
  server: TestServer,
  events: readonly OutboundEvent[],
): Promise<Arrived> {
  await sink.send(events, { signal: never })
  const [arrived] = server.arrived
  if (arrived === undefined) throw new Error('nothing arrived')
  return arrived
}

/** Runs with a server that sends these responses, and closes both at the end. */
export async function onServer(
  responses: Responder | readonly Responder[],
  open: (server: TestServer) => Sink,
  test: (sink: Sink, server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await new TestServer().listen()
  server.responses = typeof responses === 'function' ? [responses] : [...responses]
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

/** Returns the failure as the runtime classifies it. */
export async function failureOf(work: Promise<unknown>, now: number = AT): Promise<Failure> {
  const error = await refusal(work)
  return classify(error, { rules: [], handler: 'sink', includeStack: false, now })
}

/** Returns the problems that a constructor reports. */
export function problemsOf(make: () => unknown): readonly string[] {
  try {
    make()
  } catch (error) {
    return (error as { readonly problems: readonly string[] }).problems
  }
  return []
}
