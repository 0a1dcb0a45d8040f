import { isRedriveError, type RedriveError } from '@redrive/core'
import {
  type ChannelModel,
  type ConfirmChannel,
  IllegalOperationError,
  type Message,
  type Options,
} from 'amqplib'
import { answered, ManagedConnection } from './connection/connection.ts'
import { frameMaxOf } from './connection/socket.ts'
import type { RabbitMqHeaderTable } from './header-tables.ts'
import type { Connect } from './options.ts'
import { publishProblem } from './check-permission.ts'
import { notConnected, refused, rejectedByQueue, unknown, unroutable } from './publish-errors.ts'
import { checkPublishable } from './message/check-encodable.ts'
import { isRefusal } from './refusal-codes.ts'

/** A message to publish, and its destination. */
export interface Outgoing {
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: Options.Publish
}

export interface PublisherOptions {
  readonly urls: readonly string[]
  readonly connect: Connect
  readonly confirmTimeoutMs: number
  /** Called when the broker blocks publishing (with its reason) and when it unblocks it (undefined). */
  readonly onBlocked: (reason: string | undefined) => void
  /** Whether a message that a queue rejects counts as a transient failure, so that the events of a sink wait for room. */
  readonly isSink?: boolean
}

/** A caller that waits for a confirm. */
interface PendingConfirm {
  readonly endsAt: number
  readonly reject: (error: RedriveError) => void
}

/** A message that was written and that the broker has not confirmed yet. */
interface UnconfirmedMessage {
  readonly writtenAt: number
  readonly reject: (error: RedriveError) => void
}

/** A channel that was closed because of an error. */
interface ChannelClose {
  readonly error: unknown
  /** Whether the broker rejected the only unconfirmed message. With several, it is unknown which one it rejected. */
  readonly isRefusal: boolean
}

/** The header with the number of the copy. */
export const COPY: keyof RabbitMqHeaderTable = 'redrive-copy'

/**
 * Publishes persistent, mandatory messages and waits until each is confirmed and not returned. A confirm
 * alone is not enough: the broker also confirms messages that it could not route.
 *
 * It uses a separate connection. When the broker is short of memory, it stops reading connections that
 * publish, and acknowledgements must not wait behind them.
 */
export class Publisher {
  readonly #options: PublisherOptions
  readonly #connection: ManagedConnection<ConfirmChannel>
  readonly #declared = new Map<string, Promise<void>>()
  readonly #returned = new Map<string, string>()
  readonly #pending = new Set<PendingConfirm>()
  /** Messages of the current connection, oldest first. */
  readonly #unconfirmed = new Map<string, UnconfirmedMessage>()
  #count = 0
  #blocked: string | undefined
  /** Why the channel was closed; undefined while it is open, or when the connection was lost. */
  #closedBy: ChannelClose | undefined
  /** Whether the client library is reporting a rejection of the broker (`basic.nack`), not a closed channel. */
  #isNack = false
  #sweepTimer: NodeJS.Timeout | undefined

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#connection = new ManagedConnection({
      urls: options.urls,
      connect: (url) => options.connect(url, 'publish'),
      prepare: (connection) => this.#prepare(connection),
      onLost: () => this.#lost(),
    })
  }

  /**
   * Rejects all messages without a confirm. The client library rejects them only when it notices the close,
   * and a hung connection may close much later. Until then, they would count as messages of the next one.
   */
  #lost(): void {
    for (const { reject } of this.#unconfirmed.values()) reject(unknown('the connection was lost'))
    this.#unconfirmed.clear()
    this.#returned.clear()
    this.#setBlocked(undefined)
  }

  open(): Promise<void> {
    return this.#connection.open()
  }

  get isConnected(): boolean {
    return this.#connection.channel !== undefined
  }

  async close(): Promise<void> {
    clearInterval(this.#sweepTimer)
    await this.#connection.close()
  }

  async #prepare(connection: ChannelModel): Promise<ConfirmChannel> {
    connection.on('blocked', (reason) => this.#setBlocked(reason))
    connection.on('unblocked', () => this.#setBlocked(undefined))
    const channel = await connection.createConfirmChannel()
    this.#closedBy = undefined
    // The client library reports this before it rejects the unconfirmed messages.
    channel.on('error', (error) => {
      if (this.#connection.channel !== channel) return
      const isForOne = this.#unconfirmed.size === 1
      this.#closedBy = { error, isRefusal: isForOne && isRefusal(error) }
    })
    // The listener of the client library runs between these two, and calls back for each rejected message.
    channel.prependListener('nack', () => {
      this.#isNack = true
    })
    channel.on('nack', () => {
      this.#isNack = false
    })
    // The broker sends the return before the confirm of the same message.
    channel.on('return', (message) => this.#returned.set(copyNumberIn(message), replyIn(message)))
    return channel
  }

  #setBlocked(reason: string | undefined): void {
    if (this.#blocked === reason) return
    this.#blocked = reason
    // A blocking broker reads nothing, so the time to confirm starts again.
    const writtenAt = performance.now()
    for (const [copy, { reject }] of this.#unconfirmed) {
      this.#unconfirmed.set(copy, { writtenAt, reject })
    }
    this.#options.onBlocked(reason)
  }

  /**
   * Resolves when the broker has stored the message. Rejects with `UNROUTABLE` when no queue accepts it, with
   * `REFUSED` when the queue rejects it or the broker closes the channel because of it, and with `OUTCOME_UNKNOWN`
   * when the broker does not confirm it or the connection is lost. Waits without a limit: see `inTime`. Throws a
   * `RangeError` or `TypeError` when the headers cannot be encoded or do not fit into one frame.
   */
  send(outgoing: Outgoing): Promise<void> {
    const channel = this.#connection.channel
    if (channel === undefined) return Promise.reject(notConnected())
    // Messages written to a blocked connection would accumulate in the memory of this process.
    if (this.#blocked !== undefined) {
      return Promise.reject(unknown(`the broker blocks publishing (${this.#blocked})`))
    }
    this.#count += 1
    const copy = String(this.#count)
    const { exchange, routingKey, content, properties } = outgoing
    const headers = { ...(properties.headers as object), [COPY]: copy }
    const options = { ...properties, headers, persistent: true, mandatory: true }
    checkPublishable(options, frameMaxOf(this.#connection.connection))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#unconfirmed.set(copy, { writtenAt: performance.now(), reject })
    this.#sweepTimer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
    const callbacks = callbacksOf(channel)
    try {
      channel.publish(exchange, routingKey, content, options, (error: unknown) => {
        this.#unconfirmed.delete(copy)
        const reply = this.#returned.get(copy)
        if (reply !== undefined) this.#returned.delete(copy)
        if (error !== null) reject(this.#problemOf(error, outgoing))
        else if (reply !== undefined) reject(this.#unroutable(outgoing, reply))
        else resolve()
      })
    } catch (error) {
      this.#unconfirmed.delete(copy)
      const isClosed = error instanceof IllegalOperationError
      // amqplib before 1.0.4 keeps the callback, and would call it for the confirm of the next message.
      if (isClosed || callbacksOf(channel) !== callbacks) this.#connection.reset(channel, error)
      if (!isClosed) throw error
      return Promise.reject(notConnected())
    }
    return promise
  }

  /** Rejects with `REFUSED` when the user may not publish. Otherwise only the first failed message would show it. */
  async checkPermission(): Promise<void> {
    const { connection } = this.#connection
    const problem = connection === undefined ? undefined : await publishProblem(connection)
    if (isRefusal(problem)) throw refused(problem)
  }

  #problemOf(error: unknown, outgoing: Outgoing): RedriveError {
    if (this.#isNack) return rejectedByQueue(outgoing, error, this.#options.isSink === true)
    if (this.#closedBy === undefined) return unknown('the broker did not confirm it', error)
    const { error: cause, isRefusal: isCertain } = this.#closedBy
    return isCertain ? refused(cause) : unknown('the broker closed the channel', cause)
  }

  /** Waits for the confirm; rejects with `OUTCOME_UNKNOWN` after the timeout. The confirm may still arrive later. */
  inTime(proof: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending = { endsAt: performance.now() + this.#options.confirmTimeoutMs, reject }
      this.#pending.add(pending)
      proof.then(resolve, reject)
      const stopWaiting = () => void this.#pending.delete(pending)
      proof.then(stopWaiting, stopWaiting)
    })
  }

  #unroutable(outgoing: Outgoing, reply: string): RedriveError {
    this.#declared.delete(outgoing.routingKey)
    return unroutable(outgoing, reply)
  }

  #sweep(): void {
    this.#rejectOverdue()
    this.#resetIfHung()
  }

  /**
   * Resets a connection that no longer confirms. A node that lost contact with the others can lose a message
   * on its way to the queue. It then confirms nothing for that queue, while the connection stays open.
   */
  #resetIfHung(): void {
    const channel = this.#connection.channel
    const [oldest] = this.#unconfirmed.values()
    if (channel === undefined || oldest === undefined || this.#blocked !== undefined) return
    if (performance.now() - oldest.writtenAt < this.#options.confirmTimeoutMs * HUNG_AFTER_TIMEOUTS)
      return
    this.#connection.reset(channel, unknown('the broker stopped confirming'))
  }

  /** Rejects the overdue ones. They are in the order of sending, so the search stops at the first recent one. */
  #rejectOverdue(): void {
    const now = performance.now()
    for (const pending of this.#pending) {
      if (pending.endsAt > now) return
      this.#pending.delete(pending)
      pending.reject(unknown('the broker did not confirm it in time'))
    }
  }

  /** Declares the queue once. Concurrent callers wait for the same declaration. */
  ensure(queue: string, make: (connection: ChannelModel) => Promise<void>): Promise<void> {
    const known = this.#declared.get(queue)
    if (known !== undefined) return known
    const { connection, channel } = this.#connection
    if (connection === undefined || channel === undefined) return Promise.reject(notConnected())
    const declaring = answered(make(connection)).catch((error: unknown) => {
      if (isRedriveError(error, 'UNREACHABLE')) this.#connection.reset(channel, error)
      if (isRedriveError(error)) throw error
      throw isRefusal(error)
        ? refused(error, `the queue "${queue}"`)
        : unknown(`the queue "${queue}" could not be declared`, error)
    })
    this.#declared.set(queue, declaring)
    declaring.catch(() => this.#declared.delete(queue))
    return declaring
  }
}

/** Returns the number of messages that wait for a confirm in the client library; its types do not declare it. */
const callbacksOf = (channel: ConfirmChannel): number | undefined =>
  (channel as unknown as { readonly unconfirmed?: readonly unknown[] }).unconfirmed?.length

/** 1 s: exact enough for a confirm timeout of several seconds. */
const SWEEP_MS = 1_000
/** 2 confirm timeouts: after the first the outcome is unknown, but the confirm may still arrive. */
const HUNG_AFTER_TIMEOUTS = 2

function copyNumberIn({ properties }: Message): string {
  return String(properties.headers?.[COPY])
}

function replyIn({ fields }: Message): string {
  const { replyText } = fields as unknown as { replyText: string }
  return replyText
}
