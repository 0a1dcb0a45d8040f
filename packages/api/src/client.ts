import type { z } from 'zod'
import { ApiError, problem, PROBLEM_TYPE, type Problem } from './problem.ts'
import { toQueryString } from './query-string.ts'
import { type Answer, type Input, type Operation, type Route, ROUTES } from './routes.ts'

export interface ClientOptions {
  /** Where the server is, such as `https://redrive.example.com`. */
  readonly url: string
  /** A token that begins with `rdv_`. Default: none, for a page that has a session. */
  readonly token?: string
  /** With a session: `csrf` of `me`. */
  readonly csrf?: () => string | undefined
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** Names the mutation, so that asking again does not repeat it. Default: a new one for each call. */
  readonly idempotencyKey?: string
}

/** An answer, and the ETag that a change of it has to name. */
export interface Answered<T> {
  readonly answer: T
  readonly etag: string | undefined
}

type StreamOf<K extends Operation> = (typeof ROUTES)[K] extends { readonly stream: string }
  ? K
  : never
export type StreamOperation = { [K in Operation]: StreamOf<K> }[Operation]
export type PlainOperation = Exclude<Operation, StreamOperation>

/** Every operation of the API, with the types of its table. */
export interface Client {
  call<K extends PlainOperation>(
    operation: K,
    input: Input<K>,
    options?: CallOptions,
  ): Promise<Answer<K>>
  /** The same, with its ETag. */
  ask<K extends PlainOperation>(
    operation: K,
    input: Input<K>,
    options?: CallOptions,
  ): Promise<Answered<Answer<K>>>
  /** One after the other, as they come. */
  stream<K extends StreamOperation>(
    operation: K,
    input: Input<K>,
    options?: CallOptions,
  ): AsyncGenerator<Answer<K>, void, undefined>
}

export function createClient(options: ClientOptions): Client {
  const ask: Client['ask'] = async (operation, input, call) => {
    const response = await send(options, operation, input as AnyInput, call)
    const etag = response.headers.get('etag') ?? undefined
    const text = await response.text()
    const value = text === '' ? undefined : parseJson(text)
    if (text !== '' && value === undefined) throw new ApiError(notOurs(response))
    return { answer: read(operation, value), etag }
  }
  return {
    ask,
    async call(operation, input, call) {
      return (await ask(operation, input, call)).answer
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

/** What is not understood is an error here, and not somewhere later. */
function read<K extends Operation>(operation: K, value: unknown): Answer<K> {
  const schema: z.ZodType = ROUTES[operation].answer
  return schema.parse(value) as Answer<K>
}

interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly ifMatch?: string
}

async function send(
  { url, token, csrf, fetch = globalThis.fetch }: ClientOptions,
  operation: Operation,
  input: AnyInput,
  { signal, idempotencyKey }: CallOptions = {},
): Promise<Response> {
  const route: Route = ROUTES[operation]
  const headers = new Headers({ accept: 'application/json' })
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  if (input.body !== undefined) headers.set('content-type', 'application/json')
  if (input.ifMatch !== undefined) headers.set('if-match', strong(input.ifMatch))
  if (route.method !== 'GET') {
    headers.set('idempotency-key', idempotencyKey ?? crypto.randomUUID())
    const proof = csrf?.()
    if (proof !== undefined) headers.set('x-redrive-csrf', proof)
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
    throw new ApiError(notOurs(response))
  }
  return response
}

/** A proxy that compresses an answer makes its ETag weak, and a weak one fits nothing. What it names is the same. */
const strong = (etag: string): string => etag.replace(/^W\//, '')

/** For people: a proxy wants a login, or the address is of something else. In a stream it would look like silence. */
const isPage = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/html') === true

function pathOf(path: string, { params = {}, query = {} }: AnyInput): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(params[name])),
  )
  return filled + toQueryString(query)
}

/** Proxies in between answer in words of their own. */
async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text()
  const parsed = problem.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  return unexplained(
    response,
    `The server answered ${response.status} without saying why. Is this the address of a Redrive server?`,
  )
}

const notOurs = (response: Response): Problem =>
  unexplained(
    response,
    `The server answered ${response.status} with something that is not JSON. Is this the address of a Redrive server, and does a proxy in between ask for a login?`,
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
    // Not JSON: then it is not an answer of ours, and the caller says so.
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

/** The JSON in a line; undefined: a comment, a blank or the name of an event. */
function textOf(kind: 'events' | 'lines', line: string): string | undefined {
  if (kind === 'lines') return line === '' ? undefined : line
  return line.startsWith('data: ') ? line.slice('data: '.length) : undefined
}
