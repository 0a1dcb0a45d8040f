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
import { closed, HttpError, refused } from './errors.ts'
import type { TlsOptions } from './options.ts'

/** 16: an emitter sends a few batches at once; more would only queue on the other side. */
const CONNECTIONS_MAX = 16
/** 4 s: Node's own servers close an idle connection after 5 s, and a request on a closing one fails. */
const IDLE_MS = 4_000
/** 64 KB: answers are a few lines; whatever is longer is not one of theirs. */
const BODY_MAX = 65_536
/** 1 s: the end of an answer is waited for, because then its connection can be used again; not longer. */
const BODY_WAIT_MS = 1_000

/** 6: a shorter header is no key, and would blank out ordinary words. */
const SECRET_MIN = 6

const compress = promisify(gzip)

export interface HttpClientOptions {
  /** The sink, for messages. */
  readonly name: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly tls?: TlsOptions | undefined
  /** What must never show in a message, also when the other side repeats it. Headers never do. */
  readonly secrets?: readonly string[]
  /** Names to addresses. Default: the system's. */
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

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** As much of the body as was read. */
  readonly text: string
  readonly isWhole: boolean
}

/**
 * HTTP with kept connections. Node's own client and not `fetch`: only here can the address be chosen
 * that a connection goes to, and nothing follows a redirect by itself. Retries nothing.
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
    const told = Object.values(headers).flatMap((value) => [value, value.split(' ').at(-1) ?? ''])
    const long = told.filter((value) => value.length >= SECRET_MIN)
    this.#secrets = [...secrets, ...long].filter((secret) => secret !== '')
  }

  /**
   * The answer, whatever its status. Once there is a status nothing changes it any more: neither a body
   * that breaks off nor the signal, or what was accepted would be sent again.
   */
  async ask(request: HttpRequest): Promise<HttpAnswer> {
    if (this.#isClosed) throw closed(this.#options.name)
    const response = await this.#open(await this.#compressed(request))
    const { statusCode: status = 0, headers } = response
    return { status, headers, ...(await read(response)) }
  }

  /** Resolves when the answer is a good one. */
  async expectGood(request: HttpRequest): Promise<HttpAnswer> {
    const answer = await this.ask(request)
    if (!isGood(answer.status)) throw this.failure(request.url, answer)
    return answer
  }

  /** What to throw for an answer that is not the one we need. */
  failure(url: URL, { status, headers, text }: HttpAnswer, retryAfterMs?: number): Error {
    const { host } = url
    if (status < 400) {
      const what = status < 300 ? 'which is not its answer' : 'and redirects are not followed'
      return refused(`${host} answered ${status}, ${what}. Give the address of the service itself.`)
    }
    const retryAfter = headers['retry-after']
    return new HttpError({ status, host, detail: this.redact(text), retryAfter, retryAfterMs })
  }

  /** The text without our credentials. */
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
      // An IPv6 address stands in brackets in a URL and without them everywhere else.
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
    request.on('error', (error) => reject(signal.aborted ? signal.reason : error))
    request.end(body)
    return promise
  }

  close(): void {
    this.#isClosed = true
    this.#agents['http:'].destroy()
    this.#agents['https:'].destroy()
  }
}

export const isGood = (status: number): boolean => status >= 200 && status < 300

/** What came of the body, within bounds of size and time. A longer one is cut, and its connection with it. */
function read(response: IncomingMessage): Promise<Pick<HttpAnswer, 'text' | 'isWhole'>> {
  const { promise, resolve } = Promise.withResolvers<Pick<HttpAnswer, 'text' | 'isWhole'>>()
  const chunks: Buffer[] = []
  let size = 0
  const timer = setTimeout(() => response.destroy(), BODY_WAIT_MS)
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > BODY_MAX) response.destroy()
    else chunks.push(chunk)
  })
  // A body that breaks off changes nothing about the status; 'close' comes after it.
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
