import { RedriveError } from '@redrive/core'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { Leases } from './leases.ts'
import { acknowledge, respond } from './publish.ts'
import { type PulledConsumer, Puller } from './pull.ts'

export interface TakeOptions extends PulledConsumer {
  readonly connection: NatsConnection
  readonly limit: number
  readonly confirmTimeoutMs: number
}

/** 100 ms: stored messages arrive immediately. */
const WAIT_MS = 100

/** Messages that this control plane holds until it releases or abandons them. It renews their leases for this time. */
export class Batch {
  readonly messages: readonly Msg[]
  readonly #options: TakeOptions
  readonly #leases: Leases<Msg>
  readonly #released = new WeakSet<Msg>()
  #isEnded = false

  constructor(options: TakeOptions, leases: Leases<Msg>) {
    this.#options = options
    this.#leases = leases
    this.messages = leases.all()
  }

  /** Removes the messages from the server. Rejects when another control plane may have some of them. */
  async release(messages: readonly Msg[] = this.messages): Promise<void> {
    const ends = await Promise.allSettled(messages.map((message) => this.#release(message)))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined) throw lostBeforeRelease(this.#options.stream, failed.reason)
  }

  async #release(message: Msg): Promise<void> {
    if (this.#released.has(message)) return
    if (!this.#leases.has(message)) throw new Error('Its lease has ended.')
    const { connection, confirmTimeoutMs } = this.#options
    await acknowledge(connection, message.reply ?? '', confirmTimeoutMs)
    this.#released.add(message)
    this.#leases.remove(message)
  }

  /** Makes unreleased messages available again. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const message of this.#leases.all()) respond(message, '-NAK')
    this.#leases.clear()
  }
}

/** Takes up to `limit` waiting messages. */
export async function take(options: TakeOptions): Promise<Batch> {
  const { connection, limit, leaseMs } = options
  const leases = new Leases<Msg>({
    leaseMs,
    renew: ({ reply = '' }, timeout) => connection.request(reply, '+WPI', { timeout }),
    onEnded: () => undefined,
  })
  const puller = new Puller(connection, options, (message, sentAfter) =>
    leases.add(message, sentAfter),
  )
  try {
    const { problem } = await puller.pull({ batch: limit, waitMs: WAIT_MS })
    if (problem !== undefined) throw unreachable(problem)
    return new Batch(options, leases)
  } catch (error) {
    leases.clear()
    throw error
  } finally {
    puller.close()
  }
}

const unreachable = (cause: Error) =>
  new RedriveError('UNREACHABLE', `NATS does not deliver dead letters: ${cause.message}`, { cause })

const lostBeforeRelease = (stream: string, cause: unknown) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${stream}: the server did not confirm the release of all messages. Redrive reads the remaining messages again.`,
    { cause },
  )
