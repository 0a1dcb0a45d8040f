import { ignorePoolErrors, queryInTime } from '@redrive/postgres-internal'
import type { Pool, PoolClient } from 'pg'

/** The channel for notifications; the payload is the queue. */
export const WAKE_CHANNEL = 'redrive_outbox'

/** 15 s between two checks of the connection: a half-open connection sends no event. */
const PING_MS = 15_000
const PING_TIMEOUT_MS = 5_000
/** 1 s, doubled up to 30 s. Without notifications consumers poll, so reconnecting is not urgent. */
const WAIT_BASE_MS = 1_000
const WAIT_CAP_MS = 30_000

type OnWake = () => void

const listeners = new WeakMap<Pool, WakeListener>()

/** Calls `callback` when a notification for the queue arrives. All queues of a pool share one connection. */
export function onWake(pool: Pool, queue: string, callback: OnWake): () => void {
  const listener = listeners.get(pool) ?? new WakeListener(pool)
  listeners.set(pool, listener)
  return listener.add(queue, callback)
}

class WakeListener {
  readonly #pool: Pool
  readonly #callbacks = new Map<string, Set<OnWake>>()
  #client: PoolClient | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0

  constructor(pool: Pool) {
    this.#pool = pool
  }

  add(queue: string, callback: OnWake): () => void {
    const isFirst = this.#callbacks.size === 0
    const all = this.#callbacks.get(queue) ?? new Set()
    this.#callbacks.set(queue, all.add(callback))
    if (isFirst) void this.#connect()
    return () => {
      all.delete(callback)
      if (all.size === 0) this.#callbacks.delete(queue)
      if (this.#callbacks.size === 0) this.#closeClient(undefined)
    }
  }

  async #connect(): Promise<void> {
    clearTimeout(this.#timer)
    let client: PoolClient
    try {
      client = await ignorePoolErrors(this.#pool).connect()
    } catch {
      return this.#reconnectLater()
    }
    // No callback is left, or another call has connected first.
    if (this.#callbacks.size === 0 || this.#client !== undefined) return client.release()
    this.#client = client
    client.on('error', (error) => this.#lost(client, error))
    client.on('end', () => this.#lost(client, new Error('The connection has ended.')))
    client.on('notification', ({ channel, payload = '' }) => {
      if (channel === WAKE_CHANNEL) this.#notify(this.#callbacks.get(payload))
    })
    try {
      await queryInTime(client, `listen ${WAKE_CHANNEL}`, [], PING_TIMEOUT_MS)
      this.#failures = 0
      // Notifications may have been missed before LISTEN.
      for (const callbacks of this.#callbacks.values()) this.#notify(callbacks)
      this.#ping(client)
    } catch (error) {
      this.#lost(client, error)
    }
  }

  #notify(callbacks: Iterable<OnWake> = []): void {
    for (const callback of callbacks) callback()
  }

  #ping(client: PoolClient): void {
    this.#timer = setTimeout(() => {
      queryInTime(client, 'select 1', [], PING_TIMEOUT_MS).then(
        () => this.#client === client && this.#ping(client),
        (error: unknown) => this.#lost(client, error),
      )
    }, PING_MS).unref()
  }

  #lost(client: PoolClient, error: unknown): void {
    if (this.#client !== client) return
    this.#closeClient(error)
    this.#reconnectLater()
  }

  #reconnectLater(): void {
    if (this.#callbacks.size === 0) return
    const waitMs = Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** this.#failures)
    this.#failures += 1
    this.#timer = setTimeout(() => void this.#connect(), waitMs).unref()
  }

  /** Closes the connection. It listens to a channel, so the pool must not reuse it. */
  #closeClient(error: unknown): void {
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    client?.release(error instanceof Error ? error : true)
  }
}
