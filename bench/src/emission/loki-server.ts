// A separate process with Loki's push API. It parses requests and counts the entries.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Ask, Tell } from './loki-messages.ts'

let expected = 0
let count = 0

const send = (message: Tell) => process.send?.(message)

/** Returns the number of entries; undefined when this is not a push request. */
function entriesOf(body: string): number | undefined {
  const { streams } = JSON.parse(body) as { streams?: unknown }
  if (!Array.isArray(streams)) return undefined
  const values = streams.flatMap(valuesOf)
  return values.every(isEntry) ? values.length : undefined
}

function valuesOf({ stream, values }: { stream?: unknown; values?: unknown }): unknown[] {
  return isStrings(stream) && Array.isArray(values) ? (values as unknown[]) : [undefined]
}

function isEntry(value: unknown): boolean {
  if (!Array.isArray(value)) return false
  const [at, line, metadata = {}] = value as readonly unknown[]
  return (
    typeof at === 'string' && at.length === 19 && typeof line === 'string' && isStrings(metadata)
  )
}

/** Returns whether labels and metadata have the form that Loki requires. */
const isStrings = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every((each) => typeof each === 'string')

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const isPush = request.method === 'POST' && request.url === '/loki/api/v1/push'
  const entries = isPush ? entriesOf(Buffer.concat(chunks).toString()) : undefined
  response.writeHead(entries === undefined ? 400 : 204).end()
  const before = count
  count += entries ?? 0
  if (before < expected && count >= expected) send({ kind: 'reached' })
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.writeHead(400).end())
})
// Closing a connection between two samples would slow down the next candidate.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  send({ kind: 'listening', port: (server.address() as AddressInfo).port })
})

process.on('message', (ask: Ask) => {
  if (ask.kind === 'count') return send({ kind: 'count', count })
  expected = ask.count
  count = 0
  return send({ kind: 'expecting' })
})
// The parent process has ended.
process.on('disconnect', () => process.exit())
