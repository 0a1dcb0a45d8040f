import { RedriveError } from '@redrive/core'
import { systemClock } from '@redrive/runtime'
import { Leases } from '@redrive/runtime/internal'
import type { ReceivedMessage } from './delivery.ts'
import { MAX_ENTRIES, type Requests } from './requests.ts'

/** 1 minute: the time that a crashed control plane keeps its dead letters. */
const LEASE_MS = 60_000
/** 1 s: with less, SQS reads only a part of its servers. */
const WAIT_MS = 1_000

/** Messages that this control plane holds until it releases or abandons them. Their leases are renewed meanwhile. */
export class Batch {
  readonly messages: readonly ReceivedMessage[]
  readonly #requests: Requests
  readonly #url: string
  readonly #leases: Leases<ReceivedMessage>
  /** The earliest time at which SQS can have ended a lease. */
  #endsAt: number
  #isEnded = false

  constructor(
    requests: Requests,
    url: string,
    messages: readonly ReceivedMessage[],
    claimedAt: number,
  ) {
    this.messages = messages
    this.#requests = requests
    this.#url = url
    this.#endsAt = claimedAt + LEASE_MS
    this.#leases = new Leases({
      leaseMs: LEASE_MS,
      renew: () => this.#renew(),
      onLost: () => undefined,
      // The release reports that a lease has ended.
      onError: () => undefined,
    })
    for (const message of messages) this.#leases.add(message, claimedAt)
    this.#leases.start()
  }

  async #renew(): Promise<readonly ReceivedMessage[]> {
    const sentAt = systemClock.now()
    const results = await this.#each((handles) => this.#requests.hide(this.#url, handles, LEASE_MS))
    if (results.every((result) => result === undefined)) this.#endsAt = sentAt + LEASE_MS
    return []
  }

  /** Deletes the messages. Rejects when another control plane may have some of them. */
  async release(): Promise<void> {
    if (this.#isEnded || this.messages.length === 0) return
    if (this.#endsAt <= systemClock.now()) throw lostBeforeRelease(this.#url, undefined)
    const results = await this.#each((handles) => this.#requests.delete(this.#url, handles))
    const failure = results.find((result) => result !== undefined)
    if (failure !== undefined) throw lostBeforeRelease(this.#url, failure)
    this.#end()
  }

  /** Makes the messages available again. */
  async abandon(): Promise<void> {
    if (this.#isEnded) return
    this.#end()
    await this.#each((handles) => this.#requests.hide(this.#url, handles, 0))
  }

  #end(): void {
    this.#isEnded = true
    this.#leases.stop()
  }

  async #each<T>(request: (handles: readonly string[]) => Promise<readonly T[]>): Promise<T[]> {
    const all: T[] = []
    for (let i = 0; i < this.messages.length; i += MAX_ENTRIES) {
      const some = this.messages.slice(i, i + MAX_ENTRIES)
      all.push(...(await request(some.map(({ receiptHandle }) => receiptHandle))))
    }
    return all
  }
}

/** Takes up to `limit` waiting messages. Fewer do not mean that no others wait. */
export async function take(requests: Requests, url: string, limit: number): Promise<Batch> {
  const claimedAt = systemClock.now()
  const taken = new Map<string, ReceivedMessage>()
  for (let left = limit; left > 0; left = limit - taken.size) {
    const most = Math.min(left, MAX_ENTRIES)
    const some = await requests.receive(url, { most, waitMs: WAIT_MS, leaseMs: LEASE_MS })
    for (const message of some) taken.set(message.messageId, message)
    // The leases of the first messages must not end before the batch is complete.
    if (some.length < most || systemClock.now() - claimedAt > LEASE_MS / 4) break
  }
  return new Batch(requests, url, [...taken.values()], claimedAt)
}

const lostBeforeRelease = (url: string, cause: unknown) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${url}: SQS did not confirm the release of all messages. Redrive reads the ones that are still in the queue again.`,
    { cause },
  )
