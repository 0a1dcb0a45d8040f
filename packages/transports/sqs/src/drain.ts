import { RedriveError } from '@redrive/core'
import { systemClock } from '@redrive/runtime'
import type { ReceivedMessage } from './delivery.ts'
import { Leases, type Renewal } from './leases.ts'
import { MAX_ENTRIES, type Requests } from './requests.ts'

/** 1 minute: the time that a crashed control plane keeps its dead letters. */
const LEASE_MS = 60_000
/** 1 s: with less, SQS reads only a part of its servers. */
const WAIT_MS = 1_000

/** Messages that this control plane holds until it releases or abandons them. It renews their leases for this time. */
export class Batch {
  readonly messages: readonly ReceivedMessage[]
  readonly #requests: Requests
  readonly #url: string
  readonly #leases: Leases<ReceivedMessage>
  #isEnded = false
  /** The rejection of the release; every later call rejects in the same way. */
  #failed: Promise<never> | undefined

  constructor(
    requests: Requests,
    url: string,
    messages: readonly ReceivedMessage[],
    claimedAt: number,
  ) {
    this.messages = messages
    this.#requests = requests
    this.#url = url
    this.#leases = new Leases({
      leaseMs: LEASE_MS,
      renew: (some, timeoutMs) => requests.hide(url, some.map(toHidden), timeoutMs),
      // The release reports that a lease has ended.
      onEnded: () => undefined,
      onError: () => undefined,
    })
    for (const message of messages) this.#leases.add(message, claimedAt)
  }

  /** Deletes the messages. If it rejects, the messages that SQS still has are available again. */
  async release(): Promise<void> {
    if (this.#failed !== undefined) return this.#failed
    if (this.#isEnded) return
    try {
      await this.#delete()
    } catch (error) {
      this.#failed = Promise.reject(error)
      this.#failed.catch(() => undefined)
      // Without a response, they become available when their leases end.
      await this.abandon().catch(() => undefined)
      throw error
    }
    this.#end()
  }

  async #delete(): Promise<void> {
    const areOwned = this.messages.every((message) => this.#leases.has(message))
    if (!areOwned) throw lostBeforeRelease(this.#url, undefined)
    const results = await this.#each((handles) => this.#requests.delete(this.#url, handles))
    const failure = results.find((result) => result !== undefined)
    if (failure !== undefined) throw lostBeforeRelease(this.#url, failure)
  }

  /** Makes the messages available again. */
  async abandon(): Promise<void> {
    if (this.#isEnded) return
    this.#end()
    await this.#each((handles) => this.#requests.show(this.#url, handles))
  }

  #end(): void {
    this.#isEnded = true
    this.#leases.clear()
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

const toHidden = ({ one, forMs }: Renewal<ReceivedMessage>) => ({
  receiptHandle: one.receiptHandle,
  forMs,
})

const lostBeforeRelease = (url: string, cause: unknown) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${url}: SQS did not confirm the release of all messages. Redrive reads the remaining messages again.`,
    { cause },
  )
