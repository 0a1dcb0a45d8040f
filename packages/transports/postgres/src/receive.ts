import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import type { Decision } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  placed,
  publishEvent,
  type Receiver,
  SETTLED,
  type Transport,
  type TransportNeeds,
  withTimeout,
} from '@redrive/runtime'
import { ask, isRefusal } from './ask.ts'
import { CAPABILITIES, LANE_CAPABILITIES } from './capabilities.ts'
import { explained, notMigrated, readOnly } from './explain.ts'
import { maintain } from './maintain.ts'
import { type PostgresOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import {
  type Change,
  type ClaimedRow,
  changeOf,
  encodeChanges,
  HEX_PAYLOAD,
  PLACED,
  type PostgresDelivery,
  toDelivery,
} from './rows.ts'
import { onWake } from './wake.ts'

/** 500 at once: beyond a hundred a larger batch gains little, and a turn must stay short. */
const MOST = 500
/** 20 ms after nothing was found, doubling. */
const IDLE_BASE_MS = 20
/** 500 ms: how late an event may be that nobody announced. */
const IDLE_CAP_MS = 500
/**
 * 1 s between two looks at all that is due, however long ago: it finds what was committed late and what
 * a dead consumer left behind.
 */
const SWEEP_MS = 1_000
/** A look at all of it that took long is not repeated before twenty times as long: 5 % of the time at most. */
const SWEEP_SHARE = 20
/** 1 s: an event that is committed later than that after it was added waits for the look at everything. */
const OVERLAP_MS = 1_000
/** A retry due within a minute is looked for on time; the others within a second. */
const SOON_MS = 60_000
/** Retries due within 10 ms of each other share a timer. */
const SOON_STEP_MS = 10
/** 2 s for what is under way to end: a server that does not answer must not keep us from closing. */
const CLOSE_MS = 2_000
/** An hour. */
const MAINTAIN_MS = 3_600_000

const TURN = `
select id, token, due_at, type, lane, key, content_type, headers, ${HEX_PAYLOAD}, past
from redrive.outbox_turn($1::uuid[], $2::bigint[], $3::jsonb, $4, $5, $6, $7, $8)`
const KEEP = `select redrive.outbox_keep($1::uuid[], $2::bigint[], $3)`
/** What the last migration made: an older outbox_turn would take some of what we say for something else. */
const READY = `select to_regclass('redrive.outbox_retention') is not null, current_setting('transaction_read_only') = 'on'`

/** An enactment on its way to the database. */
interface Pending {
  readonly delivery: PostgresDelivery
  /** Undefined: it is done, and no replay. */
  readonly change: Change | undefined
  readonly done: Enactment
  readonly answer: (enactment: Enactment) => void
}

/**
 * The transport. One turn at a time goes to the database and carries all that has come together since
 * the last one: what is done, what is handed off, and how many more may come.
 */
export class PostgresTransport implements Transport<PostgresDelivery> {
  readonly source: string
  readonly capabilities: Capabilities
  readonly #options: ResolvedOptions
  /** What is in hand, and since when. */
  readonly #held = new Map<PostgresDelivery, number>()
  #pending: Pending[] = []
  #receiver: Receiver<PostgresDelivery> | undefined
  #limit = 1
  #isPaused = false
  #isClosed = false
  #turning: Promise<void> | undefined
  #isTurnWanted = false
  #isKeepDue = false
  #isTroubled = false
  /** Nothing is taken before: there was nothing when we last looked. */
  #lookAt = 0
  #idleMs = IDLE_BASE_MS
  #sweepAt = 0
  #floor = NO_FLOOR
  /** Where the next look at lanes begins; all of them when empty. */
  #after = ''
  readonly #timers = new Map<number, NodeJS.Timeout>()
  #lookTimer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #upkeep: NodeJS.Timeout | undefined
  #stopWaking: (() => void) | undefined

  constructor(options: ResolvedOptions) {
    this.source = options.queue
    this.capabilities = options.order === 'lane' ? LANE_CAPABILITIES : CAPABILITIES
    this.#options = options
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const [isMigrated, isReadOnly] = await this.#examine()
    if (!isMigrated) throw notMigrated()
    if (isReadOnly) throw readOnly()
    if (this.#options.isMaintaining) this.#maintainHourly(needs)
  }

  async #examine(): Promise<readonly [boolean, boolean]> {
    try {
      const [row = [false, false]] = await ask<[boolean, boolean]>(this.#options.pool, READY, [])
      return row
    } catch (error) {
      throw explained(error)
    }
  }

  #maintainHourly(needs: TransportNeeds | undefined): void {
    const { pool, queue, keepDeliveredMs } = this.#options
    const upkeep = () => {
      maintain(pool, {
        queue,
        keepDelivered: keepDeliveredMs,
        keepDeadLetters: needs?.deadLetterRetentionMs ?? Number.MAX_SAFE_INTEGER,
      }).catch((error: unknown) => {
        if (!this.#isClosed) {
          this.#report({ type: 'user_code_failed', where: 'postgres.maintain', error })
        }
      })
    }
    upkeep()
    this.#upkeep = setInterval(upkeep, MAINTAIN_MS).unref()
  }

  receive(receiver: Receiver<PostgresDelivery>): void {
    const { pool, queue, leaseMs, isListening } = this.#options
    this.#receiver = receiver
    this.#heartbeat = setInterval(() => {
      this.#isKeepDue = true
      this.#soon()
    }, leaseMs / 3).unref()
    if (isListening) this.#stopWaking = onWake(pool, queue, () => this.#look())
    this.#look()
  }

  enact(delivery: PostgresDelivery, decision: Decision): Awaitable<Enactment> {
    if (!this.#held.has(delivery)) return LOST
    return new Promise((answer) => {
      this.#pending.push({
        delivery,
        change: changeOf(delivery, decision),
        done: decision.kind === 'settle' ? SETTLED : placed(PLACED[decision.kind]),
        answer,
      })
      this.#soon()
    })
  }

  limit(count: number): void {
    this.#limit = count
    this.#soon()
  }

  async pause(): Promise<void> {
    this.#isPaused = true
    // It may be bringing something.
    await this.#turning
  }

  resume(): void {
    this.#isPaused = false
    this.#look()
  }

  // ---- turns ----------------------------------------------------------------------------------

  /** Looks for more without waiting any longer. */
  #look(): void {
    this.#lookAt = 0
    this.#idleMs = IDLE_BASE_MS
    this.#soon()
  }

  #soon(): void {
    this.#isTurnWanted = true
    this.#turning ??= this.#turns()
  }

  async #turns(): Promise<void> {
    try {
      while (this.#isTurnWanted) {
        // What handlers finish in this moment goes along.
        await nextLoopTurn()
        this.#isTurnWanted = false
        if (this.#isClosed) return
        await this.#turn()
        if (this.#isKeepDue) await this.#keep()
      }
    } finally {
      // In the same moment as the last look: who wants a turn from now on begins one.
      this.#turning = undefined
    }
  }

  async #turn(): Promise<void> {
    const pending = this.#pending.splice(0)
    for (const { delivery } of pending) this.#held.delete(delivery)
    const most = this.#room()
    if (pending.length === 0 && most === 0) return
    const startedAt = performance.now()
    const isSweep = most > 0 && startedAt >= this.#sweepAt
    try {
      const claimed = await this.#tell(pending, most, isSweep ? NO_FLOOR : this.#floor)
      if (most > 0) this.#taken(claimed, most, isSweep, startedAt)
      this.#trouble(undefined)
      for (const row of claimed) this.#deliver(row)
    } catch (error) {
      if (isSweep) this.#swept(startedAt)
      if (!isRefusal(error) || pending.length === 0) this.#trouble(error)
      await this.#failed(pending, error)
    }
  }

  /** How many more may come in now. */
  #room(): number {
    const isShut = this.#isPaused || this.#receiver === undefined || this.#isClosed
    if (isShut || performance.now() < this.#lookAt) return 0
    return Math.min(MOST, Math.max(0, this.#limit - this.#held.size))
  }

  /** Tells the database, and everyone who waits for it. Answers the rows that came in. */
  async #tell(
    pending: readonly Pending[],
    most: number,
    floor: string,
  ): Promise<readonly ClaimedRow[]> {
    const { pool, queue, order, leaseMs } = this.#options
    const done = pending.filter(({ change }) => change === undefined)
    const changes = pending.flatMap(({ change }) => change ?? [])
    const rows = await ask<ClaimedRow>(pool, TURN, [
      done.map(({ delivery }) => delivery.id),
      done.map(({ delivery }) => delivery.token),
      changes.length === 0 ? null : encodeChanges(changes),
      queue,
      most,
      leaseMs,
      floor,
      order === 'lane' ? this.#after : null,
    ])
    const claimed = rows.filter(([, token]) => token !== null)
    const notes = claimed.length === rows.length ? [] : rows.filter(([, token]) => token === null)
    const fenced = new Set(notes.map(idIn))
    this.#after = notes.find(([id]) => id === null)?.[4] ?? ''
    for (const { delivery, change, done: enactment, answer } of pending) {
      if (change?.place === 'retry') this.#lookIn(change.delay_ms ?? 0)
      // It keeps its place, which may be below the floor.
      if (change?.place === 'returned') this.#floor = NO_FLOOR
      answer(fenced.has(delivery.id) ? LOST : enactment)
    }
    return claimed
  }

  /**
   * Nobody knows what the database has done, or it refused. In the second case it may be for the sake
   * of one row: each is told alone, so that it does not hold up the others.
   */
  async #failed(pending: readonly Pending[], error: unknown): Promise<void> {
    const isOne = pending.length <= 1
    for (const one of pending) {
      try {
        if (isOne || !isRefusal(error)) throw error
        await this.#tell([one], 0, NO_FLOOR)
      } catch (cause) {
        // For how long does not matter any more: the next heartbeat takes it along.
        this.#held.set(one.delivery, 0)
        one.answer({ kind: 'unknown', error: cause })
      }
    }
    this.#waitIdle()
  }

  /** Learns from what came in when to look again, and from where. */
  #taken(claimed: readonly ClaimedRow[], most: number, isSweep: boolean, startedAt: number): void {
    if (isSweep) this.#swept(startedAt)
    const isFull = claimed.length >= most
    const last = claimed.at(-1)
    // By the database's clock, which set the due times. They come in their order; if one day they did
    // not, the floor would only be lower than it could be.
    if (last !== undefined) this.#floor = new Date(Date.parse(last[2]) - OVERLAP_MS).toISOString()
    if (claimed.length > 0) this.#idleMs = IDLE_BASE_MS
    if (isFull || this.#after !== '') this.#soon()
    else this.#waitIdle()
  }

  /** Also after one that failed: it may have failed because it took too long. */
  #swept(startedAt: number): void {
    const tookMs = performance.now() - startedAt
    this.#sweepAt = startedAt + Math.max(SWEEP_MS, tookMs * SWEEP_SHARE)
  }

  #waitIdle(): void {
    const waitMs = this.#idleMs * (0.5 + Math.random() / 2)
    this.#idleMs = Math.min(IDLE_CAP_MS, this.#idleMs * 2)
    this.#lookAt = performance.now() + waitMs
    clearTimeout(this.#lookTimer)
    this.#lookTimer = setTimeout(() => {
      this.#lookAt = 0
      this.#soon()
    }, waitMs)
  }

  /** Looks when a retry of ours is due. */
  #lookIn(delayMs: number): void {
    if (delayMs > SOON_MS || this.#isPaused) return
    const at = Math.ceil((performance.now() + delayMs) / SOON_STEP_MS) * SOON_STEP_MS
    if (this.#timers.has(at)) return
    const timer = setTimeout(() => {
      this.#timers.delete(at)
      this.#look()
    }, at - performance.now()).unref()
    this.#timers.set(at, timer)
  }

  #deliver(row: ClaimedRow): void {
    const delivery = toDelivery(this.source, row)
    this.#held.set(delivery, performance.now())
    this.#receiver?.deliver(delivery)
  }

  // ---- leases ---------------------------------------------------------------------------------

  /** Renews what has been in hand for a while; what is no longer ours is said to be lost. */
  async #keep(): Promise<void> {
    this.#isKeepDue = false
    const { pool, leaseMs } = this.#options
    const olderThan = performance.now() - leaseMs / 6
    const old = [...this.#held].filter(([, since]) => since <= olderThan).map(([one]) => one)
    if (old.length === 0) return
    try {
      const ids = old.map(({ id }) => id)
      const tokens = old.map(({ token }) => token)
      const rows = await ask<[string]>(pool, KEEP, [ids, tokens, leaseMs])
      for (const delivery of staleAmong(old, rows.map(idIn))) {
        if (this.#held.delete(delivery)) this.#receiver?.lost(delivery)
      }
    } catch (error) {
      // The next one may get through before the lease is over; if not, the token will tell.
      this.#trouble(error)
    }
  }

  // ---- closing and reporting --------------------------------------------------------------------

  async close(): Promise<void> {
    this.#isPaused = true
    this.#stopWaking?.()
    for (const timer of [this.#lookTimer, ...this.#timers.values()]) clearTimeout(timer)
    clearInterval(this.#heartbeat)
    clearInterval(this.#upkeep)
    // Rows that are not returned by then come back when their lease ends.
    await withTimeout(this.#giveBack(), CLOSE_MS, () => undefined)
    this.#isClosed = true
    this.#receiver = undefined
    this.#held.clear()
    for (const { answer } of this.#pending.splice(0)) answer(LOST)
  }

  /** First what is under way, then what is left, by name: nobody must wait for the lease to end. */
  async #giveBack(): Promise<void> {
    while (this.#turning !== undefined) await this.#turning
    const left = [...this.#held.keys()].map(async (delivery) =>
      this.enact(delivery, { kind: 'pause', reason: 'stopping', until: 0, failure: undefined }),
    )
    await Promise.all(left)
  }

  #trouble(error: unknown): void {
    const isTroubled = error !== undefined
    if (isTroubled === this.#isTroubled || this.#isClosed) return
    this.#isTroubled = isTroubled
    this.#report(isTroubled ? { type: 'connection_lost', error } : { type: 'connection_restored' })
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: Date.now(), source: this.source })
  }
}

/**
 * The deliveries whose lease is gone, by the ids that the database returns. An event that this consumer
 * claimed again is held twice under one id: the older token is the stale one.
 */
function staleAmong(
  held: readonly PostgresDelivery[],
  ids: readonly (string | null)[],
): readonly PostgresDelivery[] {
  if (ids.length === 0) return []
  const left = Map.groupBy(ids, (id) => id)
  return held
    .toSorted((one, other) => Number(BigInt(one.token) - BigInt(other.token)))
    .filter(({ id }) => left.get(id)?.pop() !== undefined)
}

const NO_FLOOR = '-infinity'

type TransportEvent =
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }
  | { readonly type: 'user_code_failed'; readonly where: string; readonly error: unknown }

const idIn = ([id]: readonly [string | null, ...unknown[]]) => id

/** A transport on a queue of the outbox. */
export function postgres(options: PostgresOptions): PostgresTransport {
  return new PostgresTransport(resolveOptions(options))
}
