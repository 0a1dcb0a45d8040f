import type { z } from 'zod'
import { ApiError, problem, PROBLEM_TYPE, type Problem } from './problem.ts'
import { toQueryString } from './query-string.ts'
import { type Output, type Input, type Operation, type Route, ROUTES } from './routes.ts'

export interface ClientOptions {
  /** URL of the server, such as `https://redrive.example.com`. */
  readonly url: string
  /** API token, which begins with `rdv_`. Default: none, for a page with a session. */
  readonly token?: string
  /** Returns the CSRF token of the session: `csrf` of the operation `me`. */
  readonly csrf?: () => string | undefined
  /** Marks every request as one of an autonomous program, which can never approve. Default false. */
  readonly isAgent?: boolean
  /** Fetch function. Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** Identifies the mutation, so that a repeated call is not applied twice. Default: a new UUID for each call. */
  readonly idempotencyKey?: string
}

/** A result with its ETag, which a change must send. */
export interface OutputWithEtag<T> {
  readonly output: T
  readonly etag: string | undefined
}

export type StreamOperation = {
  [K in Operation]: (typeof ROUTES)[K] extends { readonly stream: string } ? K : never
}[Operation]
export type PlainOperation = Exclude<Operation, StreamOperation>

/** A typed client for every operation of the API. */
export interface Client {
  /** Calls an operation and returns its result. */
  call<K extends PlainOperation>(
    operation: K,
    input: Input<K>,
    options?: CallOptions,
  ): Promise<Output<K>>
  /** Calls an operation and returns its result with the ETag. */
  ask<K extends PlainOperation>(
    operation: K,
    input: Input<K>,
    options?: CallOptions,
  ): Promise<OutputWithEtag<Output<K>>>
  /** Calls a streaming operation and yields its values. */
  stream<K extends StreamOperation>(
    operation: K,
    input: Input<K>,
    options?: CallOptions,
  ): AsyncGenerator<Output<K>, void, undefined>
}

export function createClient(options: ClientOptions): Client {
  const ask: Client['ask'] = async (operation, input, call) => {
    const response = await send(options, operation, input as AnyInput, call)
    const etag = response.headers.get('etag') ?? undefined
    const text = await response.text()
    const value = text === '' ? undefined : parseJson(text)
    if (text !== '' && value === undefined) throw new ApiError(notRedrive(response))
    return { output: read(operation, value), etag }
  }
  return {
    ask,
    async call(operation, input, call) {
      return (await ask(operation, input, call)).output
    },
    async *stream(operation, input, call) {
      const response = await send(options, operation, input as AnyInput, call)
      for await (const line of linesOf(response)) {
        const text = textOf(ROUTES[operation].stream, line)
        if (text !== undefined) yield read(operation, JSON.parse(text))
      }
    },
  }
}

/** Validates a result, so that an unexpected value fails here and not later. */
function read<K extends Operation>(operation: K, value: unknown): Output<K> {
  const schema: z.ZodType = ROUTES[operation].output
  return schema.parse(value) as Output<K>
}

interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly ifMatch?: string
}

async function send(
  { url, token, csrf, isAgent = false, fetch = globalThis.fetch }: ClientOptions,
  operation: Operation,
  input: AnyInput,
  { signal, idempotencyKey }: CallOptions = {},
): Promise<Response> {
  const route: Route = ROUTES[operation]
  const headers = new Headers({ accept: 'application/json' })
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  if (isAgent) headers.set('x-redrive-agent', 'true')
  if (input.body !== undefined) headers.set('content-type', 'application/json')
  if (input.ifMatch !== undefined) headers.set('if-match', strong(input.ifMatch))
  if (route.method !== 'GET') {
    headers.set('idempotency-key', idempotencyKey ?? crypto.randomUUID())
    const csrfToken = csrf?.()
    if (csrfToken !== undefined) headers.set('x-redrive-csrf', csrfToken)
  }
  const response = await fetch(url.replace(/\/$/, '') + pathOf(route.path, input), {
    method: route.method,
    headers,
    redirect: 'error',
    ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
    ...(signal === undefined ? {} : { signal }),
  })
  if (!response.ok) throw new ApiError(await problemOf(response))
  if (isPage(response)) {
    await response.body?.cancel()
    throw new ApiError(notRedrive(response))
  }
  return response
}

/** Makes an ETag strong. A proxy that compresses a response makes its ETag weak, which `If-Match` never accepts. */
const strong = (etag: string): string => etag.replace(/^W\//, '')

/** Returns whether the response is an HTML page, for example the login page of a proxy. A stream would ignore it. */
const isPage = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/html') === true

function pathOf(path: string, { params = {}, query = {} }: AnyInput): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(params[name])),
  )
  return filled + toQueryString(query)
}

/** Returns the problem of a response. A response of a proxy is not a problem document and gets a general text. */
async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text()
  const parsed = problem.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  return unexplained(
    response,
    `The server returned status ${response.status} without a reason. Check that the URL is the address of a Redrive server.`,
  )
}

const notRedrive = (response: Response): Problem =>
  unexplained(
    response,
    `The server returned status ${response.status} with a body that is not JSON. Check that the URL is the address of a Redrive server and that no proxy requires a login.`,
  )

const unexplained = (response: Response, detail: string): Problem => ({
  type: `${PROBLEM_TYPE}internal`,
  title: response.statusText,
  status: response.status,
  code: 'internal',
  detail,
  requestId: response.headers.get('x-request-id') ?? '',
})

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON, so it is not a response of Redrive. The caller reports it.
    return undefined
  }
}

async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  if (response.body === null) return
  let rest = ''
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Returns the JSON of a line; undefined for a comment, an empty line or an event name. */
function textOf(kind: 'events' | 'lines', line: string): string | undefined {
  if (kind === 'lines') return line === '' ? undefined : line
  return line.startsWith('data: ') ? line.slice('data: '.length) : undefined
}
