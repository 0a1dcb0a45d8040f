import type { Clock, ReplayConfirmation } from '@redrive/runtime'
import { type DeadRecord, type Entry, Group, type Kept, type StoredMessage } from './group.ts'
import type { Mistake } from './mistakes.ts'

/** A message that the store granted to an owner. */
export interface Claimed {
  readonly token: string
  readonly message: StoredMessage
  readonly deliveryCount: number
}

/** The lease of a settlement. The id exists only for the mistake that ignores the token. */
export interface Ownership {
  readonly group: string
  readonly token: string
  readonly id: string
}

/** The data that a settlement leaves, stored in the same step as the lease ends. */
export type Remains =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'returned' }
  | { readonly kind: 'confirmation'; readonly confirmation: ReplayConfirmation }
  | { readonly kind: 'retry'; readonly message: StoredMessage; readonly delayMs: number }
  | {
      readonly kind: 'dead'
      readonly message: StoredMessage
      readonly isQuarantined: boolean
      readonly retentionMs: number
    }

/**
 * A store with a shared stream, consumer groups and leases, like Redis Streams or a table. Each
 * method is one script: it runs as a whole or not at all.
 */
export class LeaseStore {
  readonly #clock: Clock
  readonly #has: (mistake: Mistake) => boolean
  readonly #stream: StoredMessage[] = []
  readonly #groups = new Map<string, Group>()
  readonly #onStream: { readonly dueAt: number; readonly message: StoredMessage }[] = []
  #tokens = 0
  /** The number of restarts; a request that spans one fails. */
  restarts = 0

  constructor(clock: Clock, has: (mistake: Mistake) => boolean) {
    this.#clock = clock
    this.#has = has
  }

  group(name: string): Group {
    const group = this.#groups.get(name) ?? new Group()
    this.#groups.set(name, group)
    this.#appendDue()
    group.advance(this.#clock.now())
    return group
  }

  send(message: StoredMessage): void {
    this.#stream.push(message)
  }

  // ---- consumers ------------------------------------------------------------------------------

  claim(name: string, owner: string, most: number, leaseMs: number): readonly Claimed[] {
    if (this.#has('claim_script_fails')) {
      throw new Error('WRONGTYPE Operation against a key holding the wrong kind of value')
    }
    const group = this.group(name)
    const claimed: Claimed[] = []
    while (claimed.length < most) {
      const entry = group.ready.shift() ?? this.#nextOfStream(group)
      if (entry === undefined) break
      const token = `lease-${++this.#tokens}`
      group.leases.set(token, { entry, owner, until: this.#clock.now() + leaseMs })
      claimed.push({ token, message: entry.message, deliveryCount: entry.lapses + 1 })
    }
    return claimed
  }

  #nextOfStream(group: Group): Entry | undefined {
    const message = this.#stream[group.cursor]
    if (message === undefined) return undefined
    const moved = this.#has('group_shares_cursor') ? [...this.#groups.values()] : [group]
    for (const one of moved) one.cursor += 1
    return { message, lapses: 0 }
  }

  /** Ends every lease of an owner, as after the lease time. */
  endLeasesOf(owner: string): void {
    for (const group of this.#groups.values()) {
      for (const [token, lease] of group.leases) {
        if (lease.owner === owner) group.lapse(token, lease.entry)
      }
    }
  }

  /** Returns the tokens whose lease has another owner or none. */
  renew(name: string, tokens: readonly string[], leaseMs: number): readonly string[] {
    const { leases } = this.group(name)
    for (const token of tokens) {
      const lease = leases.get(token)
      if (lease !== undefined) lease.until = this.#clock.now() + leaseMs
    }
    return tokens.filter((token) => !leases.has(token))
  }

  /** Ends the lease and stores the remains. Returns false when the caller is no longer the owner. */
  end(ownership: Ownership, remains: Remains): boolean {
    const group = this.group(ownership.group)
    const token = this.#tokenOf(group, ownership)
    const lease = group.leases.get(token)
    if (lease === undefined) return false
    group.leases.delete(token)
    this.leave(ownership.group, remains, lease.entry)
    return true
  }

  #tokenOf(group: Group, { token, id }: Ownership): string {
    if (!this.#has('owner_unchecked')) return token
    const [any] = [...group.leases].find(([, { entry }]) => entry.message.id === id) ?? [token]
    return any
  }

  leave(name: string, remains: Remains, entry?: Entry): void {
    const group = this.group(name)
    switch (remains.kind) {
      case 'nothing':
        return
      case 'returned':
        if (entry !== undefined) group.ready.push(entry)
        return
      case 'confirmation':
        if (this.#has('confirmation_not_stored')) return
        group.confirmations.push(kept(remains.confirmation, Number.POSITIVE_INFINITY))
        return
      case 'retry':
        return this.#retry(group, remains.message, remains.delayMs)
      case 'dead': {
        const { message, isQuarantined, retentionMs } = remains
        const keepMs = this.#has('retention_ignored') ? Number.POSITIVE_INFINITY : retentionMs
        group.dead.push(kept({ message, isQuarantined }, this.#clock.now() + keepMs))
      }
    }
  }

  #retry(group: Group, message: StoredMessage, delayMs: number): void {
    // A common mistake: the unit of the sorted set is seconds.
    const waitMs = this.#has('retry_early') ? delayMs / 1_000 : delayMs
    const dueAt = this.#clock.now() + waitMs
    if (this.#has('retry_on_shared_stream')) this.#onStream.push({ dueAt, message })
    else group.delayed.push({ dueAt, entry: { message, lapses: 0 } })
  }

  #appendDue(): void {
    const now = this.#clock.now()
    for (const one of this.#onStream.filter(({ dueAt }) => dueAt <= now)) {
      this.#onStream.splice(this.#onStream.indexOf(one), 1)
      this.#stream.push(one.message)
    }
  }

  /** Counts messages that wait or are in flight, including delayed ones. */
  backlog(name: string): number {
    const { cursor, ready, delayed, leases } = this.group(name)
    const waiting = this.#stream.length - cursor + this.#onStream.length
    return waiting + ready.length + delayed.length + leases.size
  }

  /** Counts messages that a consumer could take now. */
  lag(name: string): number {
    if (this.#has('lag_counts_delayed')) return this.backlog(name)
    const { cursor, ready } = this.group(name)
    return this.#stream.length - cursor + ready.length
  }

  // ---- control planes -------------------------------------------------------------------------

  drain(name: string, most: number, leaseMs: number): readonly Kept<DeadRecord>[] {
    const { dead } = this.group(name)
    if (!this.#has('drain_not_exclusive')) return this.#lease(dead, most, leaseMs)
    return dead.slice(0, most).map((one) => ({ ...one }))
  }

  confirmations(name: string, most: number, leaseMs: number): readonly Kept<ReplayConfirmation>[] {
    return this.#lease(this.group(name).confirmations, most, leaseMs)
  }

  /** Returns copies, so that each control plane keeps its own token. */
  #lease<T>(all: Kept<T>[], most: number, leaseMs: number): readonly Kept<T>[] {
    const now = this.#clock.now()
    const free = all.filter(({ leasedUntil }) => leasedUntil <= now).slice(0, most)
    return free.map((one) => {
      one.leasedUntil = now + leaseMs
      one.token = `plane-${++this.#tokens}`
      return { ...one }
    })
  }

  /** Removes the records, or makes them available again. Ignores records that another plane holds now. */
  endDrain<T>(all: Kept<T>[], taken: readonly Kept<T>[], isReleased: boolean): void {
    for (const { token, record } of taken) {
      const index = all.findIndex((one) =>
        this.#has('drain_not_exclusive') ? one.record === record : one.token === token,
      )
      if (index < 0) continue
      const [one] = isReleased ? all.splice(index, 1) : [all[index]]
      if (one !== undefined) Object.assign(one, { leasedUntil: 0, token: '' })
    }
  }

  /** Publishes to one group, once for each replay id. */
  replay(name: string, replayId: string, message: StoredMessage): void {
    const group = this.group(name)
    if (group.replayIds.has(replayId) && !this.#has('replay_not_deduplicated')) return
    group.replayIds.add(replayId)
    if (this.#has('replay_on_shared_stream')) return this.send(message)
    group.ready.push({ message, lapses: 0 })
  }
}

const kept = <T>(record: T, expiresAt: number): Kept<T> => ({
  record,
  expiresAt,
  leasedUntil: 0,
  token: '',
})
