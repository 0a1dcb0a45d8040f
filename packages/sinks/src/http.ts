import {
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { certificateError, closed, HttpError, refused } from './errors.ts'
import type { TlsOptions } from './options.ts'

/** 16: an emitter sends a few batches concurrently; more would only queue on the server. */
const CONNECTIONS_MAX = 16
/** 4 s: Node's own servers close an idle connection after 5 s, and a request on a closing one fails. */
const IDLE_MS = 4_000
/** 64 KB: responses have a few lines. A longer one comes from another service. */
const BODY_MAX = 65_536
/** 1 s: the end of a response is awaited, because its connection can then be reused; not longer. */
const BODY_WAIT_MS = 1_000

/** 6: a shorter header is not a key, and would hide ordinary words. */
const SECRET_MIN = 6

const compress = promisify(gzip)

export interface HttpClientOptions {
  /** Name of the sink, for messages. */
  readonly name: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly tls?: TlsOptions | undefined
  /** Texts that must never appear in a message, also when the server repeats them. Headers are always hidden. */
  readonly secrets?: readonly string[]
  /** Resolves names to addresses. Default: the system's resolver. */
  readonly lookup?: LookupFunction
  readonly gzip?: boolean
}

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  readonly signal: AbortSignal
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The part of the body that was read. */
  readonly text: string
  readonly isWhole: boolean
}

/**
 * An HTTP client with persistent connections. It uses Node's own client instead of `fetch`: only this one
 * allows to choose the address of a connection, and it does not follow redirects. It does not retry.
 */
export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #agents: { readonly 'http:': HttpAgent; readonly 'https:': HttpsAgent }
  readonly #secrets: readonly string[]
  #isClosed = false

  constructor(options: HttpClientOptions) {
    this.#options = options
    const { lookup, tls, secrets = [], headers = {} } = options
    const common = {
      keepAlive: true,
      maxSockets: CONNECTIONS_MAX,
      timeout: IDLE_MS,
      ...(lookup && { lookup }),
    }
    this.#agents = {
      'http:': new HttpAgent(common),
      'https:': new HttpsAgent({ ...common, ...plainTls(tls) }),
    }
    // A header is a key, or a word and a key.
    const values = Object.values(headers).flatMap((value) => [value, value.split(' ').at(-1) ?? ''])
    const long = values.filter((value) => value.length >= SECRET_MIN)
    this.#secrets = [...secrets, ...long].filter((secret) => secret !== '')
  }

  /**
   * Returns the response, with any status. After a status neither an incomplete body nor the signal
   * changes the result; otherwise an accepted batch would be sent again.
   */
  async request(request: HttpRequest): Promise<HttpResponse> {
    if (this.#isClosed) throw closed(this.#options.name)
    const response = await this.#open(await this.#compressed(request))
    const { statusCode: status = 0, headers } = response
    return { status, headers, ...(await read(response)) }
  }

  /** Resolves when the response is successful. */
  async expectSuccess(request: HttpRequest): Promise<HttpResponse> {
    const response = await this.request(request)
    if (!isSuccess(response.status)) throw this.failure(request.url, response)
    return response
  }

  /** Returns the error for an unexpected response. */
  failure(url: URL, { status, headers, text }: HttpResponse, retryAfterMs?: number): Error {
    const { host } = url
    if (status < 400) {
      const what =
        status < 300 ? 'which is not the expected status' : 'and redirects are not followed'
      return refused(
        `${host} responded with ${status}, ${what}. Use the URL of the service itself.`,
      )
    }
    const retryAfter = headers['retry-after']
    return new HttpError({ status, host, detail: this.redact(text), retryAfter, retryAfterMs })
  }

  /** Returns the text without our credentials. */
  redact(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text)
  }

  async #compressed(request: HttpRequest): Promise<HttpRequest> {
    if (this.#options.gzip !== true || request.body === undefined) return request
    const headers = { ...request.headers, 'content-encoding': 'gzip' }
    return { ...request, headers, body: await compress(request.body) }
  }

  #open({ method, url, headers, body, signal }: HttpRequest): Promise<IncomingMessage> {
    const isSecure = url.protocol === 'https:'
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = (isSecure ? httpsRequest : httpRequest)({
      method,
      // An IPv6 address has brackets in a URL and none everywhere else.
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port || (isSecure ? 443 : 80),
      path: `${url.pathname}${url.search}`,
      headers: {
        'user-agent': 'redrive',
        ...this.#options.headers,
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
      agent: this.#agents[isSecure ? 'https:' : 'http:'],
      signal,
    })
    request.on('response', resolve)
    request.on('error', (error) =>
      reject(signal.aborted ? signal.reason : (certificateError(error, url.host) ?? error)),
    )
    request.end(body)
    return promise
  }

  close(): void {
    this.#isClosed = true
    this.#agents['http:'].destroy()
    this.#agents['https:'].destroy()
  }
}

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** Reads the body, limited in size and time. A longer one is cut and its connection closed. */
function read(response: IncomingMessage): Promise<Pick<HttpResponse, 'text' | 'isWhole'>> {
  const { promise, resolve } = Promise.withResolvers<Pick<HttpResponse, 'text' | 'isWhole'>>()
  const chunks: Buffer[] = []
  let size = 0
  const timer = setTimeout(() => response.destroy(), BODY_WAIT_MS)
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > BODY_MAX) response.destroy()
    else chunks.push(chunk)
  })
  // An incomplete body does not change the status; 'close' follows.
  response.on('error', () => undefined)
  response.on('close', () => {
    clearTimeout(timer)
    resolve({
      text: Buffer.concat(chunks).toString(),
      isWhole: response.complete && size <= BODY_MAX,
    })
  })
  return promise
}

function plainTls({ ca, cert, key }: TlsOptions = {}): Record<string, Buffer | string> {
  const files = Object.entries({ ca, cert, key })
  return Object.fromEntries(
    files.flatMap(([name, pem]) =>
      pem === undefined ? [] : [[name, typeof pem === 'string' ? pem : Buffer.from(pem)]],
    ),
  )
}
