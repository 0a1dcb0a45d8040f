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
import type { SentMessage, TransportFault, TransportWorld } from './exercise/world.ts'

/** What a `memoryWorld` may be told; everything has a default. */
export interface MemoryWorldOptions {
  /** Default: `systemClock`. */
  readonly clock?: Clock
  /** How long a request or a delivery is on its way, as on a network. Default 0: at once. */
  readonly latencyMs?: number
  /** Claim less than the memory broker can do. */
  readonly capabilities?: Partial<Capabilities>
  /** Puts something between each transport and its connection, to see what a test makes of it. */
  readonly between?: (connection: MemoryConnection) => MemoryConnection
}

/** A world for `exerciseTransport` on the in-memory broker: the reference for writing one. */
export interface MemoryWorld extends TransportWorld {
  readonly broker: MemoryBroker
  /** Name of the source. */
  readonly queue: string
  /** The broker ends every connection and keeps every message. */
  restart(): void
}

/** A fresh broker with one queue. */
export function memoryWorld({
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
    backlog: () => Promise.resolve(broker.queue(queue).depth),
    crash: (made) => processes.get(made)?.die(),
    heal: () => {
      health.isRefusing = false
    },
    restart: () => broker.restart(),
    // The broker knows connections, not transports: all of them end, and live ones connect again.
    stealOwnership: () => broker.restart(),
    dropResponse: (made) => processes.get(made)?.dropResponse(),
    cannot: CANNOT,
    close: () => Promise.resolve(broker.close()),
  }
}

/** Abilities of other brokers that a queue in memory has no use for. */
const CANNOT: NonNullable<TransportWorld['cannot']> = {
  lag: 'the memory broker counts delayed messages and ready ones together',
  lease: 'the memory broker takes a message back only when a connection ends',
  retentionMs: 'the memory broker keeps dead letters for as long as it lives',
  otherGroup: 'each message of a queue goes to one consumer: there are no groups',
}

function sendTo(broker: MemoryBroker, queue: string, message: SentMessage): string {
  const { bytes, key, headers = {}, ...rest } = message
  const keyed = key === undefined ? headers : { ...headers, 'redrive-key': key }
  return send(broker, queue, bytes, { ...rest, headers: keyed })
}

/** The process a transport lives in, as its broker sees it. */
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

  /** The next copy is stored, and the transport does not learn of it. */
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

  #afterwards<T>(answer: T): T {
    if (this.#fault === 'dies_halfway') this.die()
    return answer
  }
}

const refused = () => new RedriveError('DLQ_FULL', 'The broker takes no copies at the moment.')

/** Everything takes its time, in order, as over a socket. */
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
    const answer = await request()
    await this.#travel()
    return answer
  }

  #travel(): Promise<void> {
    return new Promise((resolve) => this.#later(resolve))
  }
}
