import type { Awaitable, Clock, DeadLetterSource, Transport } from '@redrive/runtime'

/** A message as a producer sends it. Header values are text: every broker carries that. */
export interface SentMessage {
  readonly bytes: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string
  readonly type?: string
  /** Business key, where the transport reads it: the header `redrive-key` unless it says otherwise. */
  readonly key?: string
  /**
   * Unit of order: the partition key, message group or subject. A transport without lanes
   * (`ordering: 'none'`) may ignore it.
   */
  readonly lane?: string
}

/** What goes wrong between one transport and its broker. */
export type TransportFault =
  /**
   * The process dies halfway through its first hand-off, or through settling its first replay: one
   * request to the broker has taken effect (copy or confirmation stored, or original released), the
   * other is never sent. Put it where the client library sends both, for example around `publish` and
   * `ack` of the channels: the suite must see a transport that releases first as much as one that
   * copies first. A hand-off in one request (`atomicHandOff`) cannot die halfway; there it dies right
   * after the request.
   */
  | 'dies_halfway'
  /**
   * The broker stores neither copies nor confirmations, and says so or stays silent, until `heal`: a
   * full or missing dead-letter queue, a confirm that never comes. Receiving and acknowledging work.
   */
  | 'copies_refused'

/** An optional part of a world. `lag` is a method of its `source()`; the others are hooks of the world. */
export type WorldAbility =
  | 'lag'
  | 'lease'
  | 'stealOwnership'
  | 'dropResponse'
  | 'retentionMs'
  | 'otherGroup'

/** One consumer group of a source: its transports and its control plane. */
export interface ConsumerGroup {
  transport(): Transport
  source(): DeadLetterSource
}

/**
 * One source on a broker and everything a scenario may do to it. Each scenario gets a fresh one, and
 * several exist at once: queue, topic or table names must be the world's own.
 */
export interface TransportWorld {
  /** A new transport on the source, not yet open, as another process would have it. With or without a fault. */
  transport(fault?: TransportFault): Transport
  /** Produces to the source. Resolves when the broker has stored it, with the id it will be delivered under. */
  send(message: SentMessage): Promise<string>
  /** A new control-plane side of the source, as another process would have it. */
  source(): DeadLetterSource
  /**
   * Messages the broker holds for the source: ready, delayed and handed out but not settled; dead
   * letters and quarantine are not among them. RabbitMQ: the source's queue and its delay queues;
   * Kafka: the lag of the topic and its retry topics; Postgres: rows not yet done. It may lag
   * behind: the suite asks again until the deadline.
   */
  backlog(): Promise<number>
  /**
   * Ends that transport as `kill -9` ends its process: no acknowledgement, no return, no goodbye, and
   * nothing it does afterwards reaches the broker. Its `enact` may then answer `lost` or `unknown`;
   * its `close` resolves. What it held is handed out again, when the broker notices: close the
   * socket, or end the session for it when that would take longer than the deadline.
   */
  crash(transport: Transport): Awaitable<void>
  /** Ends `copies_refused`. */
  heal(): Awaitable<void>
  /**
   * Transports whose lease is short enough to wait for its end, for brokers that grant messages for a
   * time. The transport must renew the lease while it lives.
   */
  readonly lease?: { readonly ms: number; transport(): Transport }
  /**
   * Takes every delivery in flight away from a transport that lives on: cut its connection, end its
   * session or let its lease end. Resolves when the broker hands the messages out again.
   */
  stealOwnership?(transport: Transport): Awaitable<void>
  /**
   * Drops the response to the next hand-off of the transport: the request takes effect at the broker, and
   * the transport gets an error or a timeout. Later requests work.
   */
  dropResponse?(transport: Transport): Awaitable<void>
  /** Reads from the broker how long it keeps the dead letter of this world, in ms. */
  retentionMs?(): Promise<number>
  /** A second consumer group on the same source, for brokers that give every group every message. */
  otherGroup?(): ConsumerGroup
  /**
   * Reasons for the abilities that this broker does not have, in words for the report. A scenario that
   * needs one is skipped with the reason; without a reason and without the hook it fails.
   */
  readonly cannot?: Readonly<Partial<Record<WorldAbility, string>>>
  /**
   * Default: `systemClock`. With a `FakeClock`, which must then be the broker's too, nothing waits;
   * `send`, `backlog` and what `source` makes must then answer while the clock stands still.
   */
  readonly clock?: Clock
  /** Removes everything it made. */
  close(): Promise<void>
}
