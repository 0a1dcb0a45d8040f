import type { Decision } from '@redrive/core'
import { isReply } from '@redrive/redis-internal'
import {
  type Capabilities,
  type Enactment,
  LOST,
  publishEvent,
  type Receiver,
  systemClock,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { isUnfinished, Leases, withTimeout } from '@redrive/runtime/internal'
import { CAPABILITIES } from './capabilities.ts'
import { type RedisStreamDelivery, toDelivery } from './delivery.ts'
import { enactOn, retentionOf } from './enact.ts'
import { Ends } from './ends.ts'
import { type RedisStreamOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { type TransportEvent, wrongType } from './reports.ts'
import { type ClaimResult, MAX_ENTRIES, Member } from './server.ts'
import { type Topology, topologyOf } from './topology.ts'

/** 5 ms after a claim without entries, then doubled. */
const IDLE_BASE_MS = 5
/** 100 ms: the maximum delay of a message for an idle consumer. Ten small requests per second cost little. */
const IDLE_CAP_MS = 100
/** 1 s between two searches for ended leases, which look at all entries in flight. */
const ENDED_LEASES_MS = 1_000
/** 2 s to return messages: a server that does not respond must not block closing. */
const CLOSE_MS = 2_000

/** A transport that claims entries of a consumer group. The client of the caller is shared, and never blocked. */
export class RedisStreamTransport implements Transport<RedisStreamDelivery> {
  readonly source: string
  readonly system = 'redis'
  readonly capabilities: Capabilities = CAPABILITIES
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #topology: Topology
  readonly #member: Member
  readonly #ends: Ends
  readonly #leases: Leases<RedisStreamDelivery>
  /** Deliveries with a decision that the server may have applied. */
  readonly #unknown = new WeakSet<RedisStreamDelivery>()
  #receiver: Receiver<RedisStreamDelivery> | undefined
  #needs: TransportNeeds | undefined
  #limit = 1
  #isPaused = false
  #isReadDue = false
  #isClosed = false
  #reading: Promise<void> | undefined
  #cancelPoll: (() => void) | undefined
  #idleMs = IDLE_BASE_MS
  /** Time of the next search for ended leases. */
  #searchAt = 0
  /** A response was lost: the server may have granted entries that never arrived. */
  #isRecovering = false
  #isConnectionLost = false

  /** @internal */
  constructor(options: ResolvedOptions) {
    const { client, timeoutMs, stream, group, leaseMs } = options
    this.source = stream
    this.group = { name: `${stream} ${group}`, owner: client }
    this.#options = options
    this.#topology = topologyOf(stream, group)
    const { own, retry } = this.#topology
    const streams = [own, stream]
    this.#member = new Member({ client, timeoutMs, group, streams, retry, isLastShared: true })
    this.#ends = new Ends(this.#member)
    this.#leases = new Leases({
      leaseMs,
      renew: (deliveries) => this.#renew(deliveries),
      onLost: (delivery) => this.#reportLoss(delivery),
      onError: (error) => this.#setConnectionState(error),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    this.#needs = needs
    try {
      await this.#member.declare(['0', this.#options.from === 'latest' ? '$' : '0'])
    } catch (error) {
      throw isReply(error, 'WRONGTYPE') ? wrongType(this.source, error) : error
    }
  }

  receive(receiver: Receiver<RedisStreamDelivery>): void {
    this.#receiver = receiver
    this.#leases.start()
    this.#readNow()
  }

  async enact(delivery: RedisStreamDelivery, decision: Decision): Promise<Enactment> {
    if (!this.#leases.has(delivery)) return LOST
    this.#leases.decided(delivery)
    const enactment = await enactOn(delivery, decision, {
      isRepeated: this.#unknown.has(delivery),
      member: this.#member,
      topology: this.#topology,
      handler: this.#needs?.handler,
      retentionMs: retentionOf(this.#needs),
      end: (end) => this.#ends.add(end),
      now: () => systemClock.now(),
    })
    if (!isUnfinished(enactment)) this.#leases.delete(delivery)
    else if (enactment.kind === 'unknown') this.#unknown.add(delivery)
    this.#readSoon()
    return enactment
  }

  limit(count: number): void {
    this.#limit = count
    this.#read()
  }

  async pause(): Promise<void> {
    this.#isPaused = true
    await this.#reading
  }

  resume(): void {
    this.#isPaused = false
    this.#readNow()
  }

  // ---- reading --------------------------------------------------------------------------------

  /** Reads without waiting for the next poll. */
  #readNow(): void {
    this.#idleMs = IDLE_BASE_MS
    this.#cancelPoll?.()
    this.#cancelPoll = undefined
    this.#read()
  }

  /** Reads after all results of this turn. They have one response, and the next claim uses all their slots. */
  #readSoon(): void {
    if (this.#isReadDue) return
    this.#isReadDue = true
    setImmediate(() => {
      this.#isReadDue = false
      this.#read()
    })
  }

  #read(): void {
    if (this.#reading !== undefined || this.#cancelPoll !== undefined || this.#room === 0) return
    this.#reading = this.#readAll()
  }

  async #readAll(): Promise<void> {
    try {
      for (let room = this.#room; room > 0; room = this.#room) {
        const found = await this.#claim(room)
        if (found < room) {
          this.#poll(found > 0)
          return
        }
      }
    } finally {
      // In the same turn as the last check of the limit: a later call starts another read.
      this.#reading = undefined
    }
  }

  /** Claims and delivers entries. Returns their number; 0 when the server fails, which is reported. */
  async #claim(room: number): Promise<number> {
    const claimedAt = systemClock.now()
    const isSearching = claimedAt >= this.#searchAt || this.#member.hasMoreEnded
    try {
      if (this.#isRecovering) await this.#recover()
      const leaseMs = isSearching ? this.#options.leaseMs : undefined
      const known = this.#leases.size
      const claimed = await this.#member.claim({ count: room, leaseMs, known })
      if (claimed.hasUnknown) this.#isRecovering = true
      if (isSearching) this.#searchAt = claimedAt + ENDED_LEASES_MS
      this.#setConnectionState(undefined)
      this.#deliver(claimed, claimedAt)
      return claimed.entries.length
    } catch (error) {
      this.#isRecovering = true
      this.#setConnectionState(error)
      if (isReply(error, 'NOGROUP')) await this.#recreate()
      return 0
    }
  }

  /** Renews the leases of deliveries in flight, and returns entries whose claim had no response. */
  async #recover(): Promise<void> {
    // First: a lease may end soon. After an error, the next claim does it again.
    this.#isRecovering = false
    await this.#leases.renewAll()
    this.#reportTrimmed(await this.#member.recover(this.#leases.all().map(({ entry }) => entry)))
  }

  /** Creates a group that was removed with its stream. It starts at the first entry: none is skipped. */
  async #recreate(): Promise<void> {
    try {
      await this.#member.declare(['0', '0'])
      this.#report({ type: 'topic_recreated', where: this.source })
    } catch (error) {
      this.#setConnectionState(error)
    }
  }

  #deliver({ entries, trimmed }: ClaimResult, claimedAt: number): void {
    this.#reportTrimmed(trimmed)
    for (const entry of entries) {
      const delivery = toDelivery(this.source, entry, this.#options.body)
      if (entry.count > 1) this.#loseEarlier(delivery)
      this.#leases.add(delivery, claimedAt)
      this.#receiver?.deliver(delivery)
    }
  }

  /** Reports an earlier delivery of the entry as lost: its lease ended, and this consumer claimed it again. */
  #loseEarlier({ entry: { isOwn, id } }: RedisStreamDelivery): void {
    for (const one of this.#leases.all()) {
      if (one.entry.id === id && one.entry.isOwn === isOwn) this.#lose(one)
    }
  }

  #lose(delivery: RedisStreamDelivery): void {
    if (this.#leases.delete(delivery)) this.#reportLoss(delivery)
  }

  #reportLoss(delivery: RedisStreamDelivery): void {
    // Its lease may have ended only here. Then this consumer still owns it at the server, and returns it.
    this.#isRecovering = true
    this.#receiver?.lost(delivery)
    this.#read()
  }

  get #room(): number {
    if (this.#isPaused || this.#receiver === undefined) return 0
    return Math.min(MAX_ENTRIES, Math.max(0, this.#limit - this.#leases.size))
  }

  /** Reads again later, because the streams had no more entries. */
  #poll(hasFound: boolean): void {
    if (this.#isPaused || this.#isClosed) return
    this.#idleMs = hasFound ? IDLE_BASE_MS : Math.min(IDLE_CAP_MS, this.#idleMs * 2)
    this.#cancelPoll = systemClock.after(this.#idleMs, () => {
      this.#cancelPoll = undefined
      this.#read()
    })
  }

  async #renew(
    deliveries: readonly RedisStreamDelivery[],
  ): Promise<readonly RedisStreamDelivery[]> {
    const lost = await this.#member.renew(deliveries.map(({ entry }) => entry))
    return deliveries.filter((_, i) => lost[i])
  }

  // ---- closing and reporting --------------------------------------------------------------------

  async close(): Promise<void> {
    this.#isPaused = true
    this.#cancelPoll?.()
    // Messages that are not returned by then become available when their lease ends.
    await withTimeout(this.#leave(), CLOSE_MS, () => undefined)
    this.#isClosed = true
    this.#leases.stop()
    this.#receiver = undefined
  }

  async #leave(): Promise<void> {
    await this.#reading
    if (this.#receiver === undefined) return
    const returned = this.#leases.all().map((delivery) => this.enact(delivery, RETURN))
    await Promise.all(returned)
    try {
      await this.#member.leave()
    } catch (error) {
      this.#setConnectionState(error)
    }
  }

  #setConnectionState(error: unknown): void {
    const isLost = error !== undefined
    if (isLost === this.#isConnectionLost || this.#isClosed) return
    this.#isConnectionLost = isLost
    this.#report(isLost ? { type: 'connection_lost', error } : { type: 'connection_restored' })
  }

  #reportTrimmed(count: number): void {
    if (count > 0) this.#report({ type: 'messages_expired', where: this.source, count })
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: systemClock.now(), source: this.source }, this)
  }
}

const RETURN: Decision = { kind: 'pause', reason: 'stopping', until: 0, failure: undefined }

/** Creates a transport for a stream of Redis or Valkey. */
export function redisStream(options: RedisStreamOptions): RedisStreamTransport {
  return new RedisStreamTransport(resolveOptions(options))
}
