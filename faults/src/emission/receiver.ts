import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type Span, watchStandstills } from '../evidence/stalls.ts'
import type { Arrival, Ask, Tell } from './receivers.ts'

/**
 * Receivers in a separate process, one for each port. One of them can be down, slow, and so weak
 * that too many concurrent requests bring it down again. A recovering log store behaves like this.
 */
const SLOW_MS = 50
/** 100 concurrent requests use up its connections and memory, and it has to restart. */
const MOST_AT_ONCE = 100
/** 10 s for each restart. */
const DOWN_AGAIN_MS = 10_000

interface Receiver {
  readonly port: number
  readonly isWeak: boolean
  server: Server | undefined
  open: number
  falls: number
  readonly arrivals: Arrival[]
  /** Times of requests while the receiver is up, rejected ones included. */
  readonly requests: number[]
}

const receivers: Receiver[] = []
const standstills: Span[] = []
watchStandstills((span) => void standstills.push(span))

function start(receiver: Receiver): Promise<void> {
  const server = createServer((request, response) => void answer(receiver, request, response))
  receiver.server = server
  receiver.open = 0
  return new Promise((resolve) => server.listen(receiver.port, '127.0.0.1', resolve))
}

function stop(receiver: Receiver): void {
  receiver.server?.close()
  receiver.server?.closeAllConnections()
  receiver.server = undefined
}

async function answer(
  receiver: Receiver,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  receiver.requests.push(Date.now())
  receiver.open += 1
  let body = ''
  for await (const chunk of request) body += String(chunk)
  if (receiver.isWeak && receiver.open > MOST_AT_ONCE) return fall(receiver)
  if (receiver.isWeak) await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
  if (receiver.server === undefined) return
  receiver.open -= 1
  if (body !== '') {
    const { id, emittedAt } = JSON.parse(body) as { id: string; emittedAt: number }
    receiver.arrivals.push({ id, emittedAt, at: Date.now() })
  }
  response.writeHead(204).end()
}

function fall(receiver: Receiver): void {
  if (receiver.server === undefined) return
  receiver.falls += 1
  stop(receiver)
  setTimeout(() => void start(receiver), DOWN_AGAIN_MS)
}

const report = (message: Tell) => process.send?.(message)

process.on('message', (ask: Ask) => {
  void (async () => {
    if (ask.kind === 'open') {
      const receiver: Receiver = {
        port: ask.port,
        isWeak: ask.isWeak,
        server: undefined,
        open: 0,
        falls: 0,
        arrivals: [],
        requests: [],
      }
      receivers.push(receiver)
      if (!ask.isDown) await start(receiver)
    }
    const receiver = receivers.find(({ port }) => port === ask.port)
    if (receiver === undefined) return
    if (ask.kind === 'up') await start(receiver)
    if (ask.kind === 'down') stop(receiver)
    const { arrivals, requests, falls } = receiver
    if (ask.kind === 'report') report({ kind: 'told', arrivals, requests, falls, standstills })
    else report({ kind: 'told', arrivals: [], requests: [], falls, standstills: [] })
  })()
})
