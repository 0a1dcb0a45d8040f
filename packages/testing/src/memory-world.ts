import { randomUUID } from 'node:crypto'
import {
  MemoryBroker,
  type MemoryConnection,
  type MemorySubscription,
  memory,
  memorySource,
  send,
} from '@redrive/memory'
import {
  type Awaitable,
  type Capabilities,
  type Clock,
  systemClock,
  type Transport,
} from '@redrive/runtime'
import { RedriveError } from '@redrive/core'
import type { SentMessage, TransportFault, TransportFixture } from './exercise/world.ts'

/** Options of `memoryFixture`; everything has a default. */
export interface MemoryWorldOptions {
  /** Default: `systemClock`. */
  readonly clock?: Clock
  /** Duration of a request or a delivery, as on a network. Default 0: immediately. */
  readonly latencyMs?: number
  /** Declare fewer capabilities than the memory broker has. */
  readonly capabilities?: Partial<Capabilities>
  /** Wraps the connection of each transport, to add faults. */
  readonly between?: (connection: MemoryConnection) => MemoryConnection
}

/** A fixture for `exerciseTransport` on the in-memory broker: the reference for writing one. */
export interface MemoryWorld extends TransportFixture {
  readonly broker: MemoryBroker
  /** Name of the source. */
  readonly queue: string
  /** Ends every connection of the broker and keeps every message. */
  restart(): void
}

/** Creates a new broker with one queue. */
export function memoryFixture({
  clock = systemClock,
  latencyMs = 0,
  capabilities = {},
  between = (connection) => connection,
}: MemoryWorldOptions = {}): MemoryWorld {
  const broker = new MemoryBroker({ clock })
  const queue = `orders-${randomUUID()}`
  const processes = new Map<Transport, Process>()
  const health = { isRefusing: true }

  function transport(fault?: TransportFault): Transport {
    const process = new Process(fault, health)
    const connect = (onLost: () => void) => {
      const direct = process.watch(broker.connect(onLost))
      return between(latencyMs === 0 ? direct : new SlowConnection(direct, clock, latencyMs))
    }
    const made = memory({ broker, queue, connect, capabilities })
    processes.set(made, process)
    return made
  }

  return {
    broker,
    queue,
    clock,
    transport,
    send: (message) => Promise.resolve(sendTo(broker, queue, message)),
    source: () => memorySource({ broker, queue, capabilities }),
    backlog: () => Promise.resolve(broker.depth(queue)),
    crash: (made) => processes.get(made)?.die(),
    heal: () => {
      health.isRefusing = false
    },
    restart: () => broker.restart(),
    // The broker has connections, not transports: all of them end, and live transports reconnect.
    stealOwnership: () => broker.restart(),
    dropResponse: (made) => processes.get(made)?.dropResponse(),
    cannot: CANNOT,
    close: () => Promise.resolve(broker.close()),
  }
}

/** Abilities of other brokers that a queue in memory does not have. */
const CANNOT: NonNullable<TransportFixture['cannot']> = {
  lag: 'the memory broker counts delayed messages and ready ones together',
  lease: 'the memory broker takes a message back only when a connection ends',
  retentionMs: 'the memory broker keeps dead letters for as long as it lives',
  otherGroup: 'each message of a queue is delivered to one consumer: there are no groups',
}

function sendTo(broker: MemoryBroker, queue: string, message: SentMessage): string {
  const { bytes, key, headers = {}, ...rest } = message
  const keyed = key === undefined ? headers : { ...headers, 'redrive-key': key }
  return send(broker, queue, bytes, { ...rest, headers: keyed })
}

/** The process of a transport, as its broker sees it. */
class Process {
  readonly #fault: TransportFault | undefined
  readonly #health: { readonly isRefusing: boolean }
  #connection: MemoryConnection | undefined
  #isAlive = true
  #isResponseDropped = false

  constructor(fault: TransportFault | undefined, health: { readonly isRefusing: boolean }) {
    this.#fault = fault
    this.#health = health
  }

  die(): void {
    this.#isAlive = false
    this.#connection?.close()
  }

  /** Stores the next copy without a response to the transport. */
  dropResponse(): void {
    this.#isResponseDropped = true
  }

  watch(connection: MemoryConnection): MemoryConnection {
    this.#connection = connection
    if (!this.#isAlive) connection.close()
    return {
      publish: (queue, message, delayMs) => {
        if (this.#fault === 'copies_refused' && this.#health.isRefusing) throw refused()
        const stored = this.#afterwards(connection.publish(queue, message, delayMs))
        if (!this.#isResponseDropped) return stored
        this.#isResponseDropped = false
        throw new RedriveError('UNREACHABLE', 'The response of the broker was lost.')
      },
      ack: (tag) => this.#afterwards(connection.ack(tag)),
      subscribe: (queue, listener) => connection.subscribe(queue, listener),
      take: (queue, most) => connection.take(queue, most),
      release: (tag) => connection.release(tag),
      depth: (queue) => connection.depth(queue),
      queues: (prefix) => connection.queues(prefix),
      close: () => connection.close(),
    }
  }

  #afterwards<T>(result: T): T {
    if (this.#fault === 'dies_halfway') this.die()
    return result
  }
}

const refused = () => new RedriveError('DLQ_FULL', 'The broker accepts no copies now.')

/** A connection on which every call takes time, in order, as over a socket. */
class SlowConnection implements MemoryConnection {
  readonly #inner: MemoryConnection
  readonly #clock: Clock
  readonly #latencyMs: number

  constructor(inner: MemoryConnection, clock: Clock, latencyMs: number) {
    this.#inner = inner
    this.#clock = clock
    this.#latencyMs = latencyMs
  }

  publish(...request: Parameters<MemoryConnection['publish']>): Promise<void> {
    return this.#ask(() => this.#inner.publish(...request))
  }
  ack(tag: number): Promise<boolean> {
    return this.#ask(() => this.#inner.ack(tag))
  }
  release(tag: number): Promise<boolean> {
    return this.#ask(() => this.#inner.release(tag))
  }
  take(
    ...request: Parameters<MemoryConnection['take']>
  ): Promise<Awaited<ReturnType<MemoryConnection['take']>>> {
    return this.#ask(() => this.#inner.take(...request))
  }
  depth(queue: string): Promise<number> {
    return this.#ask(() => this.#inner.depth(queue))
  }
  queues(prefix: string): Promise<readonly string[]> {
    return this.#ask(() => this.#inner.queues(prefix))
  }
  subscribe(
    queue: string,
    listener: Parameters<MemoryConnection['subscribe']>[1],
  ): MemorySubscription {
    const subscription = this.#inner.subscribe(queue, (handed) =>
      this.#later(() => listener(handed)),
    )
    return {
      limit: (count) => this.#later(() => subscription.limit(count)),
      pause: () => this.#ask(() => subscription.pause()),
      resume: () => this.#later(() => subscription.resume()),
    }
  }
  close(): void {
    this.#inner.close()
  }

  #later(act: () => void): void {
    this.#clock.after(this.#latencyMs, act)
  }

  async #ask<T>(request: () => Awaitable<T>): Promise<T> {
    await this.#travel()
    const result = await request()
    await this.#travel()
    return result
  }

  #travel(): Promise<void> {
    return new Promise((resolve) => this.#later(resolve))
  }
}
