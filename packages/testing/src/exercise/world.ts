import type { Awaitable, Clock, DeadLetterSource, Transport } from '@redrive/runtime'

/** A message as a producer sends it. Header values are text, which every broker supports. */
export interface SentMessage {
  readonly bytes: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string
  readonly type?: string
  /** Business key, where the transport reads it: by default the header `redrive-key`. */
  readonly key?: string
  /**
   * Unit of ordering: the partition key, message group or subject. A transport without lanes
   * (`ordering: 'none'`) may ignore it.
   */
  readonly lane?: string
}

/** A fault between one transport and its broker. */
export type TransportFault =
  /**
   * The process crashes halfway through its first hand-off, or while it settles its first replay. One
   * request to the broker has taken effect (copy or confirmation stored, or original released), the
   * other is never sent. Add the fault where the client library sends both, for example around `publish`
   * and `ack` of the channels. The suite must detect both orders: a transport may release first or copy first. A
   * hand-off in one request (`atomicHandOff`) cannot crash halfway; there it crashes directly after the request.
   */
  | 'dies_halfway'
  /**
   * The broker stores neither copies nor confirmations, with or without an error, until `heal`: a full or
   * missing dead-letter queue, a confirm that never comes. Receiving and acknowledging work.
   */
  | 'copies_refused'

/** An optional part of a fixture. `lag` is a method of its `source()`; the others are hooks of the fixture. */
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
 * One source on a broker, with everything that a scenario may do to it. Each scenario gets a new one, and
 * several exist at the same time: names of queues, topics or tables must be unique per fixture.
 */
export interface TransportFixture {
  /** Creates a transport on the source, not yet open, as another process would. With or without a fault. */
  transport(fault?: TransportFault): Transport
  /** Publishes to the source. Resolves when the broker has stored the message, with its delivery id. */
  send(message: SentMessage): Promise<string>
  /** Creates a control-plane side of the source, as another process would. */
  source(): DeadLetterSource
  /**
   * Counts the messages of the source in the broker: ready, delayed, and delivered but not settled. Dead
   * letters and quarantine are not included. RabbitMQ: the source's queue and its delay queues.
   * Kafka: the lag of the topic and its retry topics. Postgres: rows not yet done. The number may be
   * late: the suite reads it again until the deadline.
   */
  backlog(): Promise<number>
  /**
   * Ends that transport as `kill -9` ends its process: no acknowledgement, no return, no disconnect, and
   * nothing it does afterwards reaches the broker. Its `enact` may then return `lost` or `unknown`;
   * its `close` resolves. The broker delivers its messages again when it notices the crash. Close the
   * socket, or end the session when that would take longer than the deadline.
   */
  crash(transport: Transport): Awaitable<void>
  /** Ends `copies_refused`. */
  heal(): Awaitable<void>
  /**
   * Transports with a lease short enough to wait for its end, for brokers that lease messages. The
   * transport must renew the lease while it lives.
   */
  readonly lease?: { readonly ms: number; transport(): Transport }
  /**
   * Takes every delivery in flight away from a transport that stays alive: close its connection, end its
   * session or let its lease end. Resolves when the broker delivers the messages again.
   */
  stealOwnership?(transport: Transport): Awaitable<void>
  /**
   * Drops the response to the next hand-off of the transport: the request takes effect at the broker, and
   * the transport gets an error or a timeout. Later requests work.
   */
  dropResponse?(transport: Transport): Awaitable<void>
  /** Reads from the broker how long it keeps the dead letter of this fixture, in ms. */
  retentionMs?(): Promise<number>
  /** Creates a second consumer group on the same source, for brokers that deliver every message to every group. */
  otherGroup?(): ConsumerGroup
  /**
   * Reasons for the abilities that this broker does not have, as text for the report. A scenario that
   * needs one is skipped with the reason. Without a reason and without the hook it fails.
   */
  readonly cannot?: Readonly<Partial<Record<WorldAbility, string>>>
  /**
   * Default: `systemClock`. A `FakeClock`, which the broker must then use too, avoids all waiting. Then
   * `send`, `backlog` and the results of `source` must return while the clock does not move.
   */
  readonly clock?: Clock
  /** Removes everything it created. */
  close(): Promise<void>
}
