import { createServer, type Server } from 'node:http'
import { type Consumer, type LoopStats, onEvent, type RedriveEvent } from '@redrive/runtime'
import { entryOf } from './log.ts'

export interface Health {
  /** down: no messages come in. degraded: they wait in the queue, because something else is in trouble. */
  readonly status: 'up' | 'degraded' | 'down'
  /** To the broker. */
  readonly connected: boolean
  readonly breaker: LoopStats['breaker'] | undefined
  readonly paused: boolean
  readonly running: number
  readonly waiting: number
  /** These three since the start of the process. */
  readonly handled: number
  readonly failed: number
  readonly deadLetters: number
  readonly lastHandledAt: string | undefined
  readonly lastEvent: { readonly event: string; readonly at: string } | undefined
}

/** What a probe, a dashboard or a person wants to know of the consumer. */
export class ConsumerHealth {
  #consumer: Consumer | undefined
  #isConnected = true
  #deadLetters = 0
  #lastHandledAt: string | undefined
  #lastEvent: Health['lastEvent']

  constructor() {
    onEvent((event) => this.#learn(event))
  }

  /** The consumer runs; undefined: it has stopped. */
  watch(consumer: Consumer | undefined): void {
    this.#consumer = consumer
  }

  read(): Health {
    const stats = this.#consumer?.stats()
    const connected = stats !== undefined && this.#isConnected
    return {
      status: connected ? statusOf(stats) : 'down',
      connected,
      breaker: stats?.breaker,
      paused: stats?.isPaused ?? true,
      running: stats?.running ?? 0,
      waiting: stats?.waiting ?? 0,
      handled: stats?.handled ?? 0,
      failed: stats?.failed ?? 0,
      deadLetters: this.#deadLetters,
      lastHandledAt: this.#lastHandledAt,
      lastEvent: this.#lastEvent,
    }
  }

  #learn(event: RedriveEvent): void {
    const at = new Date(event.at).toISOString()
    const entry = entryOf(event)
    if (entry !== undefined) this.#lastEvent = { event: entry.event, at }
    if (event.type === 'connection_lost') this.#isConnected = false
    if (event.type === 'connection_restored') this.#isConnected = true
    if (event.type !== 'enacted' || event.enactment.kind !== 'done') return
    const { place } = event.enactment
    if (place === 'settled') this.#lastHandledAt = at
    if (place === 'dead_letter' || place === 'quarantine') this.#deadLetters += 1
  }
}

/** A database that is down is no reason to restart us: we wait for it, and messages wait in the queue. */
function statusOf({ breaker, isPaused }: LoopStats): Health['status'] {
  return breaker === 'closed' && !isPaused ? 'up' : 'degraded'
}

/** `GET /healthz/consumer`: 503 when the consumer is down, else 200. */
export function serveHealth(health: ConsumerHealth, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/healthz/consumer') {
      response.writeHead(404).end()
      return
    }
    const answer = health.read()
    response.writeHead(answer.status === 'down' ? 503 : 200, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(answer, null, 2)}\n`)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, () => resolve(server))
  })
}
