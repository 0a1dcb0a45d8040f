import type { Pool, PoolClient } from 'pg'
import { askIn, guard } from './ask.ts'

/** The channel of hints; the payload is the queue. */
export const WAKE_CHANNEL = 'redrive_outbox'

/** 15 s between two questions whether the connection still lives: a half-open one never says so itself. */
const PING_MS = 15_000
const PING_TIMEOUT_MS = 5_000
/** 1 s, doubling to 30 s: without it consumers look by themselves, so there is no hurry. */
const WAIT_BASE_MS = 1_000
const WAIT_CAP_MS = 30_000

type OnWake = () => void

const listeners = new WeakMap<Pool, WakeListener>()

/** Calls back when someone says that the queue has something. One connection for all queues of a pool. */
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
      if (this.#callbacks.size === 0) this.#let(undefined)
    }
  }

  async #connect(): Promise<void> {
    clearTimeout(this.#timer)
    let client: PoolClient
    try {
      client = await guard(this.#pool).connect()
    } catch {
      return this.#again()
    }
    // Nobody wants it any more, or it was quicker twice.
    if (this.#callbacks.size === 0 || this.#client !== undefined) return client.release()
    this.#client = client
    client.on('error', (error) => this.#lost(client, error))
    client.on('end', () => this.#lost(client, new Error('The connection has ended.')))
    client.on('notification', ({ channel, payload = '' }) => {
      if (channel === WAKE_CHANNEL) this.#tell(this.#callbacks.get(payload))
    })
    try {
      await askIn(client, `listen ${WAKE_CHANNEL}`, [], PING_TIMEOUT_MS)
      this.#failures = 0
      // What was said while nobody listened.
      for (const callbacks of this.#callbacks.values()) this.#tell(callbacks)
      this.#ping(client)
    } catch (error) {
      this.#lost(client, error)
    }
  }

  #tell(callbacks: Iterable<OnWake> = []): void {
    for (const callback of callbacks) callback()
  }

  #ping(client: PoolClient): void {
    this.#timer = setTimeout(() => {
      askIn(client, 'select 1', [], PING_TIMEOUT_MS).then(
        () => this.#client === client && this.#ping(client),
        (error: unknown) => this.#lost(client, error),
      )
    }, PING_MS).unref()
  }

  #lost(client: PoolClient, error: unknown): void {
    if (this.#client !== client) return
    this.#let(error)
    this.#again()
  }

  #again(): void {
    if (this.#callbacks.size === 0) return
    const waitMs = Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** this.#failures)
    this.#failures += 1
    this.#timer = setTimeout(() => void this.#connect(), waitMs).unref()
  }

  /** It listens to a channel, so it is of no use to anyone else: ended, not given back. */
  #let(error: unknown): void {
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    client?.release(error instanceof Error ? error : true)
  }
}
