// The lower bounds: minimal handwritten code that delivers events while all is healthy. It sends
// the same requests as Redrive: one stream, with the id, type and severity of each event next to
// its line.
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import type { Contender } from './contender.ts'
import { orderPaid, TYPE } from './event.ts'
import { BATCH, REQUESTS } from './pace.ts'

type Post = (body: string) => Promise<void>

const entryOf = (number: number) => [
  `${Date.now()}000000`,
  JSON.stringify(orderPaid(number)),
  { id: randomUUID(), type: TYPE, severity: 'info' },
]

const bodyOf = (values: readonly unknown[]) =>
  JSON.stringify({ streams: [{ stream: { service_name: 'bench' }, values }] })

/** Fills batches; waits while the maximum number of requests is in flight. */
async function emit(count: number, post: Post): Promise<void> {
  const running = new Set<Promise<void>>()
  for (let number = 0; number < count; ) {
    const values: unknown[] = []
    for (const end = Math.min(number + BATCH, count); number < end; number += 1) {
      values.push(entryOf(number))
    }
    while (running.size >= REQUESTS) await Promise.race(running)
    const posted = post(bodyOf(values)).finally(() => running.delete(posted))
    running.add(posted)
  }
  await Promise.all(running)
}

const refused = (status: number) => new Error(`The server returned ${status}`)
const HEADERS = { 'content-type': 'application/json' }

/** Uses Node's fetch, which keeps its connections. */
export function withFetch(url: string): Contender {
  const post: Post = async (body) => {
    const { status } = await fetch(`${url}/loki/api/v1/push`, {
      method: 'POST',
      headers: HEADERS,
      body,
    })
    if (status !== 204) throw refused(status)
  }
  return { emit: (count) => emit(count, post), close: () => undefined }
}

/** Uses the client that Redrive's sinks use. */
export function withHttp(url: string): Contender {
  const agent = new Agent({ keepAlive: true })
  const post: Post = (body) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const headers = { ...HEADERS, 'content-length': Buffer.byteLength(body) }
    const sent = request(`${url}/loki/api/v1/push`, { method: 'POST', agent, headers })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.on('end', () =>
        response.statusCode === 204 ? resolve() : reject(refused(response.statusCode ?? 0)),
      )
      response.resume()
    })
    sent.end(body)
    return promise
  }
  return { emit: (count) => emit(count, post), close: () => agent.destroy() }
}
