import type { Decision } from '@redrive/core'
import { isRejectedByServer } from '@redrive/postgres-internal'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  publishEvent,
  type Receiver,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { Leases, withTimeout } from '@redrive/runtime/internal'
import { CAPABILITIES, LANE_CAPABILITIES } from './capabilities.ts'
import { type Claim, ClaimSchedule, NO_CLAIM } from './claim-schedule.ts'
import { DatabaseClock, processTime } from './database-clock.ts'
import { verifySchema } from './declare.ts'
import { type ClaimedRow, type PostgresDelivery, toDelivery } from './delivery.ts'
import { appliedResult, changeOf, unfinished } from './enact.ts'
import { renewLeases } from './leases.ts'
import { maintainHourly } from './maintain.ts'
import { onWake } from './notify.ts'
import { type PostgresOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { CLOCK, RETAIN } from './sql/transport.ts'
import { runStatement } from './statement.ts'
import { type PendingEnactment, sendTurn } from './turn.ts'
import { TurnLoop } from './turn-loop.ts'

/** 500 rows per turn: above 100, a larger batch gains little, and a turn must stay short. */
const MAX_ROWS = 500
/** 2 s to return rows: a server that does not answer must not block closing. */
const CLOSE_MS = 2_000

/**
 * A transport that sends one turn at a time to the database. A turn contains everything since the last one: the
 * settled deliveries, the hand-offs and the number of further rows to claim.
 */
export class PostgresTransport implements Transport<PostgresDelivery> {
  readonly source: string
  readonly system = 'postgresql'
  readonly capabilities: Capabilities
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #leases: Leases<PostgresDelivery>
  readonly #turns = new TurnLoop(() => this.#turn())
  readonly #schedule = new ClaimSchedule(() => this.#turns.request())
  readonly #clock = new DatabaseClock()
  readonly #closing = new AbortController()
  #pending: PendingEnactment[] = []
  #receiver: Receiver<PostgresDelivery> | undefined
  #limit = 1
  #isPaused = false
  #isClosed = false
  #isConnectionLost = false
  /** The lane after which the next claim starts; empty for all lanes. */
  #nextLane = ''
  #heartbeat: NodeJS.Timeout | undefined
  #stopWaking: (() => void) | undefined
  #handler: string | undefined

  /** @internal */
  constructor(options: ResolvedOptions) {
    this.source = options.queue
    this.group = { name: `${options.schema} ${options.queue}`, owner: options.pool }
    this.capabilities = options.order === 'lane' ? LANE_CAPABILITIES : CAPABILITIES
    this.#options = options
    this.#leases = new Leases({
      leaseMs: options.leaseMs,
      renew: (deliveries) => this.#turns.runAfterTurn(() => this.#renew(deliveries)),
      onLost: (delivery) => this.#receiver?.lost(delivery),
      onError: (error) => this.#setConnectionState(error),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    this.#handler = needs?.handler
    await verifySchema(this.#options)
    await this.#compareClocks()
    await this.#storeRetention(needs)
    if (this.#options.isMaintaining) this.#maintainHourly(needs)
  }

  async #compareClocks(): Promise<void> {
    const sentAt = processTime()
    const [row] = await runStatement<[string]>(this.#options, CLOCK, [])
    if (row !== undefined) this.#clock.observe(sentAt, Number(row[0]), processTime())
  }

  async #storeRetention(needs: TransportNeeds | undefined): Promise<void> {
    const { queue, deliveredRetentionMs } = this.#options
    const keepFailedMs = needs?.deadLetterRetentionMs ?? Number.MAX_SAFE_INTEGER
    await runStatement(this.#options, RETAIN, [queue, deliveredRetentionMs, keepFailedMs])
  }

  #maintainHourly(needs: TransportNeeds | undefined): void {
    const { pool, schema, queue, deliveredRetentionMs } = this.#options
    const retention = {
      schema,
      queue,
      deliveredRetention: deliveredRetentionMs,
      deadLetterRetention: needs?.deadLetterRetentionMs ?? Number.MAX_SAFE_INTEGER,
    }
    maintainHourly(pool, retention, {
      signal: this.#closing.signal,
      onError: (error) =>
        this.#report({ type: 'user_code_failed', where: 'postgres.maintain', error }),
    })
  }

  receive(receiver: Receiver<PostgresDelivery>): void {
    const { pool, queue, leaseMs, isListening } = this.#options
    this.#receiver = receiver
    this.#leases.start()
    this.#heartbeat = setInterval(() => {
      this.#turns
        .runAfterTurn(() => this.#compareClocks())
        .catch((error: unknown) => this.#setConnectionState(error))
    }, leaseMs / 3).unref()
    if (isListening) this.#stopWaking = onWake(pool, queue, () => this.#schedule.claimNow())
    this.#schedule.claimNow()
  }

  enact(delivery: PostgresDelivery, decision: Decision): Awaitable<Enactment> {
    if (!this.#leases.has(delivery)) return LOST
    this.#leases.decided(delivery)
    return new Promise((resolve) => {
      this.#pending.push({
        delivery,
        change: changeOf(delivery, decision, this.#handler),
        done: appliedResult(decision),
        resolve,
      })
      this.#turns.request()
    })
  }

  limit(count: number): void {
    this.#limit = count
    this.#turns.request()
  }

  async pause(): Promise<void> {
    this.#isPaused = true
    // The current turn may still deliver rows.
    await this.#turns.running
  }

  resume(): void {
    this.#isPaused = false
    this.#schedule.claimNow()
  }

  async #turn(): Promise<void> {
    const pending = this.#pending.splice(0)
    for (const { delivery } of pending) this.#leases.delete(delivery)
    const maxRows = this.#freeCapacity()
    if (pending.length === 0 && maxRows === 0) return
    const claim = this.#schedule.next(maxRows)
    const sentAt = processTime()
    try {
      const rows = await this.#sendTurn(pending, claim)
      const hasMore = rows.length >= maxRows || this.#nextLane !== ''
      if (maxRows > 0) this.#schedule.claimed(claim, rows, hasMore)
      this.#setConnectionState(undefined)
      for (const row of rows) this.#deliver(row, sentAt)
    } catch (error) {
      this.#schedule.scanned(claim)
      if (!isRejectedByServer(error) || pending.length === 0) this.#setConnectionState(error)
      await this.#failed(pending, error)
    }
  }

  /** Returns the number of rows that may be claimed now. */
  #freeCapacity(): number {
    const isClosedForClaims = this.#isPaused || this.#receiver === undefined || this.#isClosed
    if (isClosedForClaims || !this.#schedule.isDue) return 0
    return Math.min(MAX_ROWS, Math.max(0, this.#limit - this.#leases.size))
  }

  /** Sends a turn to the database, resolves the pending enactments and returns the claimed rows. */
  async #sendTurn(
    pending: readonly PendingEnactment[],
    { maxRows, watermark }: Pick<Claim, 'maxRows' | 'watermark'>,
  ): Promise<readonly ClaimedRow[]> {
    const turn = { pending, maxRows, watermark, afterLane: this.#nextLane }
    const { claimed, fenced, nextLane } = await sendTurn(this.#options, turn)
    this.#nextLane = nextLane
    for (const { delivery, change, done, resolve } of pending) {
      if (change?.place === 'retry' && !this.#isPaused) this.#schedule.claimIn(change.delay_ms ?? 0)
      if (change?.place === 'returned') this.#schedule.dropWatermark()
      resolve(fenced.has(delivery.id) ? LOST : done)
    }
    return claimed
  }

  /**
   * Handles a failed turn: the outcome is unknown, or the database rejected it. A rejection may be caused by
   * one row, so each change is sent alone and does not block the others.
   */
  async #failed(pending: readonly PendingEnactment[], error: unknown): Promise<void> {
    const isOne = pending.length <= 1
    for (const one of pending) {
      try {
        if (isOne || !isRejectedByServer(error)) throw error
        await this.#sendTurn([one], NO_CLAIM)
      } catch (cause) {
        // The start time 0 makes the next renewal include it.
        this.#leases.add(one.delivery, 0)
        this.#leases.decided(one.delivery)
        one.resolve(unfinished(cause))
      }
    }
    this.#schedule.waitIdle()
  }

  #deliver(row: ClaimedRow, claimedAt: number): void {
    const delivery = toDelivery(this.source, row, this.#clock.aheadMs)
    if (delivery.deliveryCount > 1) this.#loseEarlier(delivery)
    this.#leases.add(delivery, claimedAt)
    this.#receiver?.deliver(delivery)
  }

  /** Reports an earlier delivery of the row as lost: its lease ended, and this transport claimed the row again. */
  #loseEarlier({ id }: PostgresDelivery): void {
    for (const earlier of this.#leases.all()) {
      if (earlier.id !== id) continue
      this.#leases.delete(earlier)
      this.#receiver?.lost(earlier)
    }
  }

  /** Renews the leases of the messages in flight. Returns the messages with another owner. */
  async #renew(deliveries: readonly PostgresDelivery[]): Promise<readonly PostgresDelivery[]> {
    const current = deliveries.filter((delivery) => this.#leases.has(delivery))
    return renewLeases(this.#options, current)
  }

  async close(): Promise<void> {
    this.#isPaused = true
    this.#closing.abort()
    this.#stopWaking?.()
    this.#schedule.stop()
    clearInterval(this.#heartbeat)
    this.#leases.stop()
    // Rows that are not returned by then become available when their lease expires.
    await withTimeout(this.#returnAll(), CLOSE_MS, () => undefined)
    this.#isClosed = true
    this.#turns.stop()
    this.#receiver = undefined
    for (const delivery of this.#leases.all()) this.#leases.delete(delivery)
    for (const { resolve } of this.#pending.splice(0)) resolve(LOST)
  }

  /** Waits for the current turn, then returns the remaining rows, so that other consumers need not wait for the lease. */
  async #returnAll(): Promise<void> {
    while (this.#turns.running !== undefined) await this.#turns.running
    const left = this.#leases
      .all()
      .map(async (delivery) =>
        this.enact(delivery, { kind: 'pause', reason: 'stopping', until: 0, failure: undefined }),
      )
    await Promise.all(left)
  }

  #setConnectionState(error: unknown): void {
    const isLost = error !== undefined
    if (isLost === this.#isConnectionLost || this.#isClosed) return
    this.#isConnectionLost = isLost
    this.#report(isLost ? { type: 'connection_lost', error } : { type: 'connection_restored' })
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: Date.now(), source: this.source }, this)
  }
}

type TransportEvent =
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }
  | { readonly type: 'user_code_failed'; readonly where: string; readonly error: unknown }

/** Creates a transport for a queue of the outbox. */
export function postgres(options: PostgresOptions): PostgresTransport {
  return new PostgresTransport(resolveOptions(options))
}
