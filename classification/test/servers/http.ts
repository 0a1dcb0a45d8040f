import { createServer } from 'node:http'
import { type Listener, listen } from './tcp.ts'

export interface HttpResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
}

/** Starts a server that sends the same response to every request. */
export function respond({ status, headers = {}, body = {} }: HttpResponse): Promise<Listener> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  })
  return listen(server)
}
