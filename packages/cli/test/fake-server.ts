import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type Output,
  ApiError,
  type Operation,
  type Problem,
  type ProblemCode,
  PROBLEMS,
} from '@redrive/api'
import { fromQueryString, PROBLEM_TYPE, type Route, ROUTES } from '@redrive/api/internal'

export interface RecordedRequest {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  readonly headers: IncomingMessage['headers']
}

/** Thrown by a handler: the server sends these lines and then breaks the connection. */
export class Lost extends Error {
  readonly lines: readonly unknown[]

  constructor(...lines: readonly unknown[]) {
    super('lost')
    this.lines = lines
  }
}

/** Responses of the server. A handler of a stream returns all its events. */
export type Handlers = {
  readonly [K in Operation]?: (
    request: RecordedRequest,
  ) => Output<K> | readonly Output<K>[] | Promise<Output<K>>
}

export interface FakeServer {
  readonly url: string
  readonly env: Readonly<Record<string, string>>
  /** All requests, in order. */
  readonly requests: RecordedRequest[]
  close(): Promise<void>
}

export const refuse = (
  code: ProblemCode,
  detail: string,
  facts: Pick<Problem, 'problems' | 'needsAnotherPerson'> = {},
): never => {
  throw new ApiError({
    type: `${PROBLEM_TYPE}${code}`,
    title: code,
    status: PROBLEMS[code],
    code,
    detail,
    ...facts,
    requestId: 'req-1',
  })
}

/** Starts a server with some routes of the API. Requests must match the schemas of the API. */
export async function fakeServer(handlers: Handlers): Promise<FakeServer> {
  const requests: RecordedRequest[] = []
  const server = createServer((request, response) => {
    void answer(request, response, handlers, requests).catch((error: unknown) => {
      response.statusCode = 500
      response.end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    env: { REDRIVE_URL: url, REDRIVE_TOKEN: 'rdv_test' },
    requests,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  handlers: Handlers,
  requests: RecordedRequest[],
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake')
  const found = routeOf(request.method ?? '', url.pathname)
  if (found === undefined) return missing(response, 'no such route')
  const { operation, params } = found
  const route: Route = ROUTES[operation]
  const query = route.query === undefined ? {} : fromQueryString(route.query, listed(url))
  const text = await textOf(request)
  const body: unknown = text === '' ? undefined : JSON.parse(text)
  route.params?.parse(params)
  route.query?.parse(query)
  route.body?.parse(body)
  requests.push({ operation, params, query, body, headers: request.headers })
  const handle = handlers[operation] as ((request: RecordedRequest) => unknown) | undefined
  if (handle === undefined) return missing(response, `${operation} has no handler in this test`)
  try {
    const result = await handle(requests.at(-1) as RecordedRequest)
    response.statusCode = route.status ?? 200
    response.setHeader('etag', '"tag"')
    if (route.stream === undefined) response.end(JSON.stringify(result))
    else await stream(response, route.stream, result as unknown[])
  } catch (error) {
    if (error instanceof Lost) return breakOff(response, error)
    if (!(error instanceof ApiError)) throw error
    problem(response, error.problem)
  }
}

async function stream(
  response: ServerResponse,
  kind: 'events' | 'lines',
  values: readonly unknown[],
) {
  for (const one of values) {
    response.write(
      kind === 'events'
        ? `event: run\ndata: ${JSON.stringify(one)}\n\n`
        : `${JSON.stringify(one)}\n`,
    )
  }
  response.end()
}

function breakOff(response: ServerResponse, { lines }: Lost): void {
  if (lines.length === 0) return void response.destroy()
  const text = lines.map((one) => `${JSON.stringify(one)}\n`).join('')
  response.write(text, () => response.destroy())
}

const missing = (response: ServerResponse, detail: string): void => {
  const code = 'not_found'
  const status = PROBLEMS[code]
  const type = `${PROBLEM_TYPE}${code}`
  problem(response, { type, title: code, status, code, detail, requestId: 'req-1' })
}

function problem(response: ServerResponse, body: Problem): void {
  response.statusCode = body.status
  response.setHeader('content-type', 'application/problem+json')
  response.end(JSON.stringify(body))
}

function routeOf(method: string, path: string) {
  for (const [operation, route] of Object.entries(ROUTES) as [Operation, Route][]) {
    if (route.method !== method) continue
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
    const match = new RegExp(`^${route.path.replace(/\{\w+\}/g, '([^/]+)')}$`).exec(path)
    if (match === null || (names.length > 0 && path.endsWith('/export'))) continue
    const params = Object.fromEntries(
      names.map((name, at) => [name, decodeURIComponent(match[at + 1] as string)]),
    )
    return { operation, params }
  }
  return undefined
}

function listed(url: URL): Record<string, unknown> {
  const raw: Record<string, unknown> = {}
  for (const name of url.searchParams.keys()) {
    const all = url.searchParams.getAll(name)
    raw[name] = all.length === 1 ? all[0] : all
  }
  return raw
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}
