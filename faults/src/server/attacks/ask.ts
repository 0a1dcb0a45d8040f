import { randomUUID } from 'node:crypto'

export interface HttpResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly ms: number
  json<T>(): T
}

export interface RequestContent {
  readonly body?: unknown
  /** JSON text that is sent unchanged instead of `body`. */
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends requests as one person. */
export interface Person {
  (method: string, path: string, sent?: RequestContent): Promise<HttpResponse>
  /** Returns the headers of a response that may never end. */
  head(path: string): Promise<Headers>
  readonly credentials: Readonly<Record<string, string>>
}

/** 60 s: an attack may make the server slow, and the scenario must detect that. */
const PATIENCE_MS = 60_000

export function asking(url: string, credentials: Readonly<Record<string, string>> = {}): Person {
  const send = async (method: string, path: string, init: RequestInit = {}) =>
    fetch(`${url}${path}`, {
      method,
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...init,
      headers: { ...credentials, ...(init.headers as Record<string, string>) },
    })
  const ask = async (
    method: string,
    path: string,
    sent: RequestContent = {},
  ): Promise<HttpResponse> => {
    const startedAt = performance.now()
    const answer = await send(method, path, initOf(method, sent))
    const text = await answer.text()
    const ms = performance.now() - startedAt
    return {
      ...{ status: answer.status, headers: answer.headers, text, ms },
      json: <T>() => JSON.parse(text) as T,
    }
  }
  const head = async (path: string) => {
    const ending = new AbortController()
    const { headers } = await send('GET', path, { signal: ending.signal })
    ending.abort()
    return headers
  }
  return Object.assign(ask, { head, credentials })
}

function initOf(method: string, { body, text, headers }: RequestContent): RequestInit {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body))
  return {
    headers: {
      ...(method === 'GET' ? {} : { 'idempotency-key': randomUUID() }),
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
  }
}

export const isOk = ({ status }: HttpResponse): boolean => status >= 200 && status < 300

/** Returns the result; throws when a step fails that the scenario needs. */
export function must<T>(response: HttpResponse): T {
  if (!isOk(response)) throw new Error(`${response.status}: ${response.text}`)
  return response.text === '' ? (undefined as T) : response.json<T>()
}
