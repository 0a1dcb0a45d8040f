import { createServer, type Server } from 'node:http'
import { type Consumer, type ConsumerStats, onEvent, type RedriveEvent } from '@redrive/runtime'
import { entryOf } from './log.ts'

export interface Health {
  /**
   * down: no messages are consumed. degraded: messages wait in the queue, because a dependency is
   * unhealthy.
   */
  readonly status: 'up' | 'degraded' | 'down'
  /** Whether the broker connection is open. */
  readonly connected: boolean
  readonly breaker: ConsumerStats['breaker'] | undefined
  readonly paused: boolean
  readonly running: number
  readonly waiting: number
  /** These three counts start with the process. */
  readonly handled: number
  readonly failed: number
  readonly deadLetters: number
  readonly lastHandledAt: string | undefined
  readonly lastEvent: { readonly event: string; readonly at: string } | undefined
}

/** The state of the consumer, for a probe, a dashboard or a person. */
export class ConsumerHealth {
  #consumer: Consumer | undefined
  #isConnected = true
  #deadLetters = 0
  #lastHandledAt: string | undefined
  #lastEvent: Health['lastEvent']

  constructor() {
    onEvent((event) => this.#learn(event))
  }

  /** Sets the running consumer; undefined when it has stopped. */
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
    const { destination } = event.enactment
    if (destination === 'settled') this.#lastHandledAt = at
    if (destination === 'dead_letter' || destination === 'quarantine') this.#deadLetters += 1
  }
}

/**
 * Returns the status. A database that is down is no reason to restart the service, because messages
 * wait in the queue.
 */
function statusOf({ breaker, isPaused }: ConsumerStats): Health['status'] {
  return breaker === 'closed' && !isPaused ? 'up' : 'degraded'
}

/** Serves `GET /healthz/consumer`: 503 when the consumer is down, else 200. */
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
