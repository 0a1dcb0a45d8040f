import { createServer } from 'node:http'
import { type Listener, listen } from './tcp.ts'

export interface HttpResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent unchanged instead. */
  readonly text?: string
}

/** Starts a server that sends the same response to every request. */
export function respond({
  status,
  headers = {},
  body = {},
  text = JSON.stringify(body),
}: HttpResponse): Promise<Listener> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(text)
  })
  return listen(server)
}
