import type { ReplayConfirmation } from '@redrive/runtime'

/** A message as the store keeps it; Redrive's state is in its headers. */
export interface StoredMessage {
  readonly id: string
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly type: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
}

/** A message that waits for a consumer of one group. */
export interface Entry {
  readonly message: StoredMessage
  /** How often its lease ended before it was settled. */
  readonly lapses: number
}

/** An entry with an owner, until it is settled or the lease ends. */
export interface Lease {
  readonly entry: Entry
  readonly owner: string
  until: number
}

/** A record that a control plane takes under a lease and then releases. */
export interface Kept<T> {
  readonly record: T
  /** The time at which the store may remove it. */
  readonly expiresAt: number
  leasedUntil: number
  token: string
}

export interface DeadRecord {
  readonly message: StoredMessage
  readonly isQuarantined: boolean
}

/** Everything that belongs to one consumer group. */
export class Group {
  /** Position of the next entry of the shared stream. */
  cursor = 0
  /** Returned, retried and replayed entries: only this group gets them. */
  readonly ready: Entry[] = []
  readonly delayed: { readonly dueAt: number; readonly entry: Entry }[] = []
  readonly leases = new Map<string, Lease>()
  readonly dead: Kept<DeadRecord>[] = []
  readonly confirmations: Kept<ReplayConfirmation>[] = []
  readonly replayIds = new Set<string>()

  /** Makes entries available that are due or whose lease has ended, and removes expired records. */
  advance(now: number): void {
    for (const one of this.delayed.filter(({ dueAt }) => dueAt <= now)) {
      this.delayed.splice(this.delayed.indexOf(one), 1)
      this.ready.push(one.entry)
    }
    for (const [token, { entry, until }] of this.leases) {
      if (until <= now) this.lapse(token, entry)
    }
    for (const one of this.dead.filter(({ expiresAt }) => expiresAt <= now)) {
      this.dead.splice(this.dead.indexOf(one), 1)
    }
  }

  lapse(token: string, { message, lapses }: Entry): void {
    this.leases.delete(token)
    this.ready.push({ message, lapses: lapses + 1 })
  }
}
