import type { Decision, Delivery } from '@redrive/core'
import type { Awaitable } from '../awaitable.ts'
import type { Capabilities } from '../capabilities.ts'

/**
 * An adapter that receives deliveries and enacts decisions on one broker.
 *
 * Obligations, checked by `exerciseTransport`:
 * - **Copy, confirm, release.** A hand-off (retry, dead letter, quarantine) stores a copy, waits for
 *   the broker's confirmation, and only then releases the original. Without a confirmation, the
 *   original stays and the result is `unknown`.
 * - **Enacting twice has one effect.** After `unknown` or `refused` the runtime enacts the same decision
 *   for the same delivery again. A confirmed copy is not made twice.
 * - **Never early.** A retry is not delivered before its `dueAt`, measured by the broker's clock from
 *   the time of the hand-off.
 * - **Replays are confirmed.** Settling or dropping a delivery with a replay id first stores a
 *   confirmation and waits for the broker to confirm it, as a hand-off does.
 * - **Unchanged.** Bytes and the producer's headers are not changed.
 * - **One owner.** A delivery stays with its receiver while the transport lives, for any duration of the
 *   handler: a transport with leases renews them. A stale owner changes nothing: its enactments return `lost`.
 * - **No rules.** The decision is made elsewhere. A transport only implements it.
 *
 * Order of calls. The runtime calls `open` once, then `limit` or `pause`, then `receive` once. After
 * that it calls `enact`, `limit`, `pause` and `resume` in any order, also while an earlier `enact` or
 * `pause` is unfinished. `close` is the last call. It may come first when `open` rejected, and twice.
 *
 * | call      | before it        | effect                                                             |
 * |-----------|------------------|--------------------------------------------------------------------|
 * | `open`    | nothing          | connects; delivers nothing yet                                     |
 * | `limit`   | `open`           | before `receive`: holds from the first delivery on; later: soon    |
 * | `pause`   | `open`           | before `receive`: nothing is delivered until `resume`              |
 * | `receive` | `open`, `limit`  | deliveries begin, unless paused; no `resume` is needed             |
 * | `resume`  | `pause`          | deliveries begin or continue                                       |
 * | `enact`   | its delivery     | at most one at a time for each delivery                            |
 * | `close`   | anything         | resolves; no delivery arrives afterwards                           |
 */
export interface Transport<D extends Delivery = Delivery> {
  /** The name of the queue, topic, subject or table. */
  readonly source: string
  /** Name of the broker in telemetry, as OpenTelemetry writes it: `rabbitmq`, `kafka`, `postgresql` … Absent: `redrive`. */
  readonly system?: string
  readonly capabilities: Capabilities
  /**
   * The transports with the same messages: each message is delivered to one of them. No run of a message starts while an
   * earlier run of it is alive in a consumer of the same group in this process. Absent: no other transport has its messages.
   */
  readonly group?: TransportGroup

  /** Connects, and declares or verifies what it needs. Rejects with an error that explains the fix. */
  open(needs?: TransportNeeds): Promise<void>

  /** Starts to pass deliveries to the receiver. Called once, after `open` and the first `limit` or `pause`. */
  receive(receiver: Receiver<D>): Awaitable<void>

  /** Enacts the decision and returns what was done. Must not throw for broker problems: return `unknown` or `refused`. */
  enact(delivery: D, decision: Decision): Awaitable<Enactment>

  /**
   * Sets the maximum number of unsettled deliveries. Called before `receive`, it holds from the first
   * delivery on. A later change takes effect soon: a few more may already be on their way.
   */
  limit(count: number): void

  /**
   * Stops new deliveries without giving up the connection; those in flight stay valid. Waits for the read
   * in progress: after it resolved, no delivery arrives until `resume`.
   */
  pause(): Awaitable<void>
  resume(): void

  /**
   * Returns the number of messages of the source that this consumer has not finished, as far as it knows
   * without a request. Absent or undefined: it does not know.
   */
  lag?(): number | undefined

  /**
   * Releases everything. Deliveries that are not settled return to the source, uncounted where the broker
   * can. Resolves also when `open` was never called or rejected, and when called again.
   */
  close(options: { readonly drainMs: number }): Promise<void>
}

/** Identifies transports with the same messages. */
export interface TransportGroup {
  /** Source and consumer group; with the address of the broker, without credentials, when `owner` is absent. */
  readonly name: string
  /** The client or broker object, compared by identity. */
  readonly owner?: object
}

/** What the consumer requires of the transport. */
export interface TransportNeeds {
  /** How long a dead letter is kept, where the broker can be configured. */
  readonly deadLetterRetentionMs: number
  /**
   * Deliveries without a result after which a message is quarantined. A broker with its own limit must have a higher
   * one. Absent: crashes are not counted.
   */
  readonly crashLimit?: number
  /** Name of the consumer, if it has one. The transport stores it with every dead letter. */
  readonly handler?: string
}

/** The target of received deliveries. */
export interface Receiver<D extends Delivery = Delivery> {
  deliver(delivery: D): void
  /**
   * Reports that the broker took this delivery back: the connection was lost, the partition revoked or the
   * lease ended. Called once for each such delivery, as soon as the transport notices.
   */
  lost(delivery: D): void
}

/** The result of enacting a decision. */
export type Enactment =
  | {
      readonly kind: 'done'
      readonly destination: Destination
      /** The queue or topic in which the copy is. Absent: the message did not move to another one. */
      readonly target?: string
      /** Failures omitted from the history to fit the header budget. */
      readonly truncated: number
    }
  /** It may or may not have been applied. This consumer still owns the original. */
  | { readonly kind: 'unknown'; readonly error: unknown }
  /**
   * The broker rejected it and stored nothing; the error contains the words of the broker. This consumer still
   * owns the original. `isTooLarge`: the broker never stores this copy. A retry then becomes a dead letter.
   */
  | { readonly kind: 'refused'; readonly error: unknown; readonly isTooLarge: boolean }
  /** This consumer no longer owns the delivery. The broker delivers it again. */
  | { readonly kind: 'lost' }

/** A result after which the runtime enacts the decision again. */
export type UnfinishedEnactment = Extract<Enactment, { kind: 'unknown' | 'refused' }>

export function isUnfinished(enactment: Enactment): enactment is UnfinishedEnactment {
  return enactment.kind === 'unknown' || enactment.kind === 'refused'
}

export type Destination =
  | 'settled'
  | 'retry'
  | 'returned'
  | 'dead_letter'
  | 'quarantine'
  | 'dropped'

export const SETTLED: Enactment = Object.freeze({
  kind: 'done',
  destination: 'settled',
  truncated: 0,
})
export const LOST: Enactment = Object.freeze({ kind: 'lost' })

export function movedTo(destination: Destination, truncated = 0, target?: string): Enactment {
  return { kind: 'done', destination, truncated, ...(target === undefined ? {} : { target }) }
}
