import type { Decision } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Clock,
  type Enactment,
  LOST,
  publishEvent,
  type Receiver,
  type Transport,
  type TransportNeeds,
} from '@redrive/runtime'
import { CAPABILITIES } from './capabilities.ts'
import type { Connection } from './connection.ts'
import { enactOn } from './enact.ts'
import { type LeaseDelivery, toDelivery } from './headers.ts'
import type { Mistake } from './mistakes.ts'
import type { Claimed } from './store.ts'

/** 10 ms between two reads of an empty stream. */
const POLL_MS = 10

export interface LeaseOptions {
  readonly source: string
  readonly group: string
  readonly leaseMs: number
  readonly connection: Connection
  readonly clock: Clock
  readonly has: (mistake: Mistake) => boolean
}

/** Claims messages under a lease, renews it while handlers run, and settles with its token. */
export class LeaseTransport implements Transport<LeaseDelivery> {
  readonly source: string
  readonly capabilities: Capabilities = CAPABILITIES
  readonly #options: LeaseOptions
  readonly #held = new Set<LeaseDelivery>()
  #receiver: Receiver<LeaseDelivery> | undefined
  #needs: TransportNeeds = { deadLetterRetentionMs: Number.POSITIVE_INFINITY }
  #limit = 1
  #isPaused = false
  #isTroubled = false
  #reading: Promise<void> | undefined
  #stopRenewing: (() => void) | undefined
  #stopPolling: (() => void) | undefined

  constructor(options: LeaseOptions) {
    this.source = options.source
    this.#options = options
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const { connection, group } = this.#options
    this.#needs = needs ?? this.#needs
    await connection.run('read', (store) => store.group(group))
  }

  receive(receiver: Receiver<LeaseDelivery>): void {
    this.#receiver = receiver
    this.#renewLater()
    this.#read()
  }

  async enact(delivery: LeaseDelivery, decision: Decision): Promise<Enactment> {
    if (!this.#held.has(delivery)) return LOST
    const { connection, group, clock, has } = this.#options
    const now = () => clock.now()
    const options = { connection, group, needs: this.#needs, now, has }
    const enactment = await enactOn(delivery, decision, options)
    if (enactment.kind !== 'unknown') this.#held.delete(delivery)
    this.#read()
    return enactment
  }

  limit(count: number): void {
    this.#limit = count
    this.#read()
  }

  pause(): Awaitable<void> {
    this.#isPaused = true
    if (!this.#options.has('pause_does_not_wait')) return this.#reading
  }

  resume(): void {
    this.#isPaused = false
    this.#read()
  }

  async close(): Promise<void> {
    this.#isPaused = true
    this.#stopRenewing?.()
    this.#stopPolling?.()
    await this.#reading
    const { connection, group } = this.#options
    const owned = [...this.#held].map(({ token, id }) => ({ group, token, id }))
    this.#held.clear()
    this.#receiver = undefined
    if (owned.length === 0) return
    // When the store is unreachable, the leases end later.
    await connection
      .run('read', (store) => owned.forEach((one) => store.end(one, { kind: 'returned' })))
      .catch((error: unknown) => this.#report(error))
  }

  // ---- reading --------------------------------------------------------------------------------

  #read(): void {
    if (this.#reading === undefined && this.#room > 0) this.#reading = this.#readAll()
  }

  async #readAll(): Promise<void> {
    this.#stopPolling?.()
    try {
      while (this.#room > 0) {
        const claimed = await this.#claim(this.#room)
        for (const one of claimed) this.#deliver(toDelivery(this.source, one))
        if (claimed.length === 0) return this.#poll()
      }
    } finally {
      // In the same turn as the last check of the limit: a later call starts another read.
      this.#reading = undefined
    }
  }

  /** Claims messages; none when the store fails, which is reported. */
  async #claim(most: number): Promise<readonly Claimed[]> {
    const { connection, group, leaseMs } = this.#options
    try {
      const claimed = await connection.run('read', (store) =>
        store.claim(group, connection.owner, most, leaseMs),
      )
      this.#isTroubled = false
      return claimed
    } catch (error) {
      this.#report(error)
      return []
    }
  }

  get #room(): number {
    if (this.#isPaused || this.#receiver === undefined) return 0
    return Math.max(0, this.#limit - this.#held.size)
  }

  #deliver(delivery: LeaseDelivery): void {
    this.#held.add(delivery)
    this.#receiver?.deliver(delivery)
  }

  #poll(): void {
    if (!this.#isPaused) this.#stopPolling = this.#options.clock.after(POLL_MS, () => this.#read())
  }

  // ---- leases ---------------------------------------------------------------------------------

  #renewLater(): void {
    const { clock, leaseMs, has } = this.#options
    if (has('lease_not_renewed')) return
    this.#stopRenewing = clock.after(leaseMs / 3, () => {
      void this.#renew().finally(() => this.#receiver !== undefined && this.#renewLater())
    })
  }

  async #renew(): Promise<void> {
    const { connection, group, leaseMs } = this.#options
    const tokens = [...this.#held].map(({ token }) => token)
    if (tokens.length === 0) return
    try {
      const lost = await connection.run('read', (store) => store.renew(group, tokens, leaseMs))
      for (const delivery of [...this.#held])
        if (lost.includes(delivery.token)) this.#lose(delivery)
    } catch (error) {
      this.#report(error)
    }
  }

  #lose(delivery: LeaseDelivery): void {
    this.#held.delete(delivery)
    if (!this.#options.has('loss_not_reported')) this.#receiver?.lost(delivery)
    this.#read()
  }

  #report(error: unknown): void {
    if (this.#isTroubled) return
    this.#isTroubled = true
    const { source } = this
    publishEvent({ type: 'connection_lost', at: this.#options.clock.now(), source, error })
  }
}
