import { isRedriveError, RedriveError } from '@redrive/core'
import {
  type ChannelModel,
  type ConfirmChannel,
  IllegalOperationError,
  type Message,
  type Options,
} from 'amqplib'
import { answered, Link } from './link.ts'
import type { Connect } from './options.ts'

/** What is to be stored, and where. */
export interface Outgoing {
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: Options.Publish
}

export interface PublisherParts {
  readonly urls: readonly string[]
  readonly connect: Connect
  readonly confirmTimeoutMs: number
  /** The broker takes nothing at the moment, or takes it again. */
  readonly onBlocked: (reason: string | undefined) => void
}

/** Someone who waits for a proof. */
interface Pending {
  readonly endsAt: number
  readonly reject: (error: RedriveError) => void
}

/** A message that was written, and for which the broker has not answered. */
interface Unanswered {
  readonly writtenAt: number
  readonly reject: (error: RedriveError) => void
}

/** Names one publish, so that a message the broker returns is known again. Never read by a consumer. */
const COPY = 'redrive-copy'

/**
 * Publishes with proof: persistent, mandatory, confirmed and not returned. Confirmed alone proves
 * nothing: the broker confirms what it could not route, too.
 *
 * It has a connection of its own. The broker stops reading a connection that publishes while it is
 * short of memory, and acknowledgements must not be stuck behind that.
 */
export class Publisher {
  readonly #parts: PublisherParts
  readonly #link: Link<ConfirmChannel>
  readonly #made = new Map<string, Promise<void>>()
  readonly #returned = new Map<string, string>()
  readonly #pending = new Set<Pending>()
  /** Of the connection we have, the oldest first. */
  readonly #unanswered = new Map<string, Unanswered>()
  #count = 0
  #blocked: string | undefined
  #sweep: NodeJS.Timeout | undefined

  constructor(parts: PublisherParts) {
    this.#parts = parts
    this.#link = new Link({
      urls: parts.urls,
      connect: (url) => parts.connect(url, 'publish'),
      prepare: (connection) => this.#prepare(connection),
      onLost: () => this.#lost(),
    })
  }

  /**
   * Nothing is proven any more that was written before. The client library says so when it hears of the end,
   * which a connection that hangs may tell much later; until then the next one would be taken for it.
   */
  #lost(): void {
    for (const { reject } of this.#unanswered.values()) reject(unknown('the connection was lost'))
    this.#unanswered.clear()
    this.#returned.clear()
    this.#setBlocked(undefined)
  }

  open(): Promise<void> {
    return this.#link.open()
  }

  get isConnected(): boolean {
    return this.#link.channel !== undefined
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep)
    await this.#link.close()
  }

  async #prepare(connection: ChannelModel): Promise<ConfirmChannel> {
    connection.on('blocked', (reason) => this.#setBlocked(reason))
    connection.on('unblocked', () => this.#setBlocked(undefined))
    const channel = await connection.createConfirmChannel()
    // It comes before the confirm of the same message.
    channel.on('return', (message) => this.#returned.set(copyIn(message), replyIn(message)))
    return channel
  }

  #setBlocked(reason: string | undefined): void {
    if (this.#blocked === reason) return
    this.#blocked = reason
    // The broker has read nothing meanwhile: it answers from now on.
    const writtenAt = performance.now()
    for (const [copy, { reject }] of this.#unanswered) {
      this.#unanswered.set(copy, { writtenAt, reject })
    }
    this.#parts.onBlocked(reason)
  }

  /**
   * Resolves when the broker has stored it; rejects with `UNROUTABLE` when no queue takes it, and with
   * `OUTCOME_UNKNOWN` when the broker says that it has not, or can no longer say. Waits for that
   * however long it takes: see `inTime`. Throws what the client library throws when it cannot encode
   * the headers.
   */
  send(outgoing: Outgoing): Promise<void> {
    const channel = this.#link.channel
    if (channel === undefined) return Promise.reject(notConnected())
    // What is written to a blocked connection piles up in this process instead.
    if (this.#blocked !== undefined) {
      return Promise.reject(unknown(`the broker takes no messages (${this.#blocked})`))
    }
    this.#count += 1
    const copy = String(this.#count)
    const { exchange, routingKey, content, properties } = outgoing
    const headers = { ...(properties.headers as object), [COPY]: copy }
    const options = { ...properties, headers, persistent: true, mandatory: true }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#unanswered.set(copy, { writtenAt: performance.now(), reject })
    this.#sweep ??= setInterval(() => this.#sweepOut(), SWEEP_MS).unref()
    try {
      channel.publish(exchange, routingKey, content, options, (error: unknown) => {
        this.#unanswered.delete(copy)
        const reply = this.#returned.get(copy)
        if (reply !== undefined) this.#returned.delete(copy)
        if (error !== null) reject(unknown('the broker did not confirm it', error))
        else if (reply !== undefined) reject(this.#unroutable(outgoing, reply))
        else resolve()
      })
    } catch (error) {
      this.#unanswered.delete(copy)
      if (!(error instanceof IllegalOperationError)) throw error
      this.#link.reset(channel, error)
      return Promise.reject(notConnected())
    }
    return promise
  }

  /** The proof, or `OUTCOME_UNKNOWN` when it does not come in time. It may still come later. */
  inTime(proof: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending = { endsAt: performance.now() + this.#parts.confirmTimeoutMs, reject }
      this.#pending.add(pending)
      proof.then(resolve, reject)
      const isOver = () => void this.#pending.delete(pending)
      proof.then(isOver, isOver)
    })
  }

  #unroutable({ exchange, routingKey }: Outgoing, reply: string): RedriveError {
    this.#made.delete(routingKey)
    const target =
      exchange === '' ? `queue ${routingKey}` : `exchange ${exchange}, key ${routingKey}`
    return new RedriveError(
      'UNROUTABLE',
      `The broker returned a message for ${target}: ${reply}. Is the queue there, and bound?`,
    )
  }

  #sweepOut(): void {
    this.#giveUpOld()
    this.#leaveWhatHangs()
  }

  /**
   * A node that lost sight of the others can lose a message on its way to the queue and never confirm
   * anything for that queue again, while the connection is well. Whoever waits must go elsewhere.
   */
  #leaveWhatHangs(): void {
    const channel = this.#link.channel
    const [oldest] = this.#unanswered.values()
    if (channel === undefined || oldest === undefined || this.#blocked !== undefined) return
    if (performance.now() - oldest.writtenAt < this.#parts.confirmTimeoutMs * HANGS) return
    this.#link.reset(channel, unknown('the broker does not confirm any more'))
  }

  /** One timer for all: in the order they were sent, so that the first young one ends the search. */
  #giveUpOld(): void {
    const now = performance.now()
    for (const pending of this.#pending) {
      if (pending.endsAt > now) return
      this.#pending.delete(pending)
      pending.reject(unknown('the broker did not confirm it in time'))
    }
  }

  /** Makes the queue unless it was made before; all who need it at once wait for the same. */
  ensure(queue: string, make: (connection: ChannelModel) => Promise<void>): Promise<void> {
    const known = this.#made.get(queue)
    if (known !== undefined) return known
    const { connection, channel } = this.#link
    if (connection === undefined || channel === undefined) return Promise.reject(notConnected())
    const making = answered(make(connection)).catch((error: unknown) => {
      if (isRedriveError(error, 'UNREACHABLE')) this.#link.reset(channel, error)
      throw isRedriveError(error) ? error : unknown(`the queue ${queue} could not be made`, error)
    })
    this.#made.set(queue, making)
    making.catch(() => this.#made.delete(queue))
    return making
  }
}

/** A second: beside a confirm timeout of seconds, exact enough. */
const SWEEP_MS = 1_000
/** 2 confirm timeouts: after the first the outcome is unknown, but the confirm may be late. */
const HANGS = 2

function copyIn({ properties }: Message): string {
  return String(properties.headers?.[COPY])
}

function replyIn({ fields }: Message): string {
  const { replyText } = fields as unknown as { replyText: string }
  return replyText
}

const notConnected = () => unknown('there is no connection to the broker')

const unknown = (why: string, cause?: unknown) =>
  new RedriveError('OUTCOME_UNKNOWN', `A message may not be stored: ${why}${because(cause)}.`, {
    cause,
  })

const because = (cause: unknown) => (cause instanceof Error ? ` (${cause.message})` : '')
