import { randomUUID } from 'node:crypto'
import {
  deadLetterQueue,
  type Handed,
  type MemoryConnection,
  type MemoryMessage,
  replayedQueue,
  send,
} from '@redrive/memory'
import { type Decision, type Delivery, SETTLE } from '@redrive/core'
import {
  type DeadLetterSource,
  type DrainedDeadLetter,
  type ReplayConfirmation,
  type Transport,
  serializeConfirmation,
} from '@redrive/runtime'
import { FakeClock, type TransportFixture } from '../src/index.ts'
import { type MemoryWorld, memoryFixture } from '../src/memory-world.ts'

/** Fixtures whose transport breaks one guarantee each. */

export interface BrokenWorld extends TransportFixture {
  restart(): void
}

const virtual = () => ({ clock: new FakeClock() })

/** Adds a fault between the transport and the broker. */
export function brokenConnection(
  change: (connection: MemoryConnection) => Partial<MemoryConnection>,
): BrokenWorld {
  return memoryFixture({
    ...virtual(),
    between: (connection) => ({ ...plain(connection), ...change(connection) }),
  })
}

/** Returns the methods as properties, so that some can be replaced. */
function plain(connection: MemoryConnection): MemoryConnection {
  return {
    publish: (queue, message, delayMs) => connection.publish(queue, message, delayMs),
    subscribe: (queue, listener) => connection.subscribe(queue, listener),
    take: (queue, most) => connection.take(queue, most),
    ack: (tag) => connection.ack(tag),
    release: (tag) => connection.release(tag),
    depth: (queue) => connection.depth(queue),
    queues: (prefix) => connection.queues(prefix),
    close: () => connection.close(),
  }
}

/** Changes every copy on its way to the broker. */
export const brokenCopies = (
  change: (message: MemoryMessage, queue: string) => MemoryMessage,
): BrokenWorld =>
  brokenConnection((connection) => ({
    publish: (queue, message, delayMs) =>
      connection.publish(queue, change(message, queue), delayMs),
  }))

export const without =
  (...names: readonly string[]) =>
  (message: MemoryMessage): MemoryMessage => ({
    ...message,
    headers: Object.fromEntries(
      Object.entries(message.headers).filter(([name]) => !names.includes(name)),
    ),
  })

export const reEncoded = (message: MemoryMessage): MemoryMessage => ({
  ...message,
  bytes: new TextEncoder().encode(new TextDecoder().decode(message.bytes)),
})

/** Changes every delivery on its way to the transport. */
export const brokenHandOuts = (change: (handed: Handed) => Handed): BrokenWorld =>
  brokenConnection((connection) => ({
    subscribe: (queue, listener) =>
      connection.subscribe(queue, (handed) => listener(change(handed))),
  }))

/** Adds a fault to the transport itself. */
export function brokenTransport(
  change: (transport: Transport, world: MemoryWorld) => Partial<Transport>,
): BrokenWorld {
  const world = memoryFixture(virtual())
  const inner = new Map<Transport, Transport>()
  return {
    ...world,
    transport: (fault) => {
      const transport = world.transport(fault)
      const broken = { ...forwarding(transport), ...change(transport, world) }
      inner.set(broken, transport)
      return broken
    },
    crash: (transport) => world.crash(inner.get(transport) ?? transport),
    dropResponse: (transport) => world.dropResponse?.(inner.get(transport) ?? transport),
  }
}

function forwarding(transport: Transport): Transport {
  return {
    source: transport.source,
    capabilities: transport.capabilities,
    open: (needs) => transport.open(needs),
    receive: (receiver) => transport.receive(receiver),
    enact: (delivery, decision) => transport.enact(delivery, decision),
    limit: (count) => transport.limit(count),
    pause: () => transport.pause(),
    resume: () => transport.resume(),
    close: (options) => transport.close(options),
  }
}

/** Adds a fault to the control-plane side. */
export function brokenSource(
  change: (source: DeadLetterSource) => Partial<DeadLetterSource>,
): BrokenWorld {
  const world = memoryFixture(virtual())
  return {
    ...world,
    source: () => {
      const source = world.source()
      const forwarded: DeadLetterSource = {
        source: source.source,
        replay: source.replay,
        drain: (options) => source.drain(options),
        publish: (replay) => source.publish(replay),
        confirmations: (options) => source.confirmations(options),
        depth: () => source.depth(),
        close: () => source.close(),
      }
      return { ...forwarded, ...change(source) }
    },
  }
}

// ---- faults that need more than a line ----------------------------------------------------------

/** Releases the original, and only then publishes the copy. */
export function acknowledgesFirst(connection: MemoryConnection): Partial<MemoryConnection> {
  const copies: Parameters<MemoryConnection['publish']>[] = []
  return {
    publish: (...copy) => void copies.push(copy),
    ack: async (tag) => {
      const isOurs = await connection.ack(tag)
      for (const copy of copies.splice(0)) await connection.publish(...copy)
      return isOurs
    },
  }
}

export function ignoresConfirmation(connection: MemoryConnection): Partial<MemoryConnection> {
  return {
    publish: async (...copy) => {
      try {
        await connection.publish(...copy)
      } catch {
        // No caller reads it.
      }
    },
  }
}

/** Returns the deliveries in flight on a pause. */
export function returnsOnPause(connection: MemoryConnection): Partial<MemoryConnection> {
  const held = new Set<number>()
  return {
    subscribe: (queue, listener) => {
      const subscription = connection.subscribe(queue, (handed) => {
        held.add(handed.tag)
        listener(handed)
      })
      return {
        limit: (count) => subscription.limit(count),
        resume: () => subscription.resume(),
        pause: async () => {
          await subscription.pause()
          for (const tag of held) await connection.release(tag)
          held.clear()
          // Waits one turn. Otherwise the message would be delivered and returned forever without one.
          await new Promise((resolve) => setImmediate(resolve))
        },
      }
    },
  }
}

/** Delivers every message, paused or not. */
export function ignoresPause(connection: MemoryConnection): Partial<MemoryConnection> {
  return {
    subscribe: (queue, listener) => {
      const subscription = connection.subscribe(queue, (handed) =>
        // One turn later, or a return would be delivered again before it has returned.
        setImmediate(() => listener(handed)),
      )
      return {
        limit: (count) => subscription.limit(count),
        resume: () => subscription.resume(),
        pause: () => undefined,
      }
    },
  }
}

/** Returns a message to the end of the queue. */
export function returnsToTheEnd(connection: MemoryConnection): Partial<MemoryConnection> {
  const held = new Map<number, { readonly queue: string; readonly handed: Handed }>()
  return {
    subscribe: (queue, listener) =>
      connection.subscribe(queue, (handed) => {
        held.set(handed.tag, { queue, handed })
        listener(handed)
      }),
    release: async (tag) => {
      const one = held.get(tag)
      if (one === undefined) return false
      await connection.publish(one.queue, one.handed.message, 0)
      return connection.ack(tag)
    },
  }
}

/** Ignores a pause before the first receive. */
export function pausesOnlyLater(transport: Transport): Partial<Transport> {
  let isReceiving = false
  return {
    receive: (receiver) => {
      isReceiving = true
      return transport.receive(receiver)
    },
    pause: () => (isReceiving ? transport.pause() : undefined),
  }
}

/** Ignores the limit that is set before `receive`. */
export function limitsOnlyLater(transport: Transport): Partial<Transport> {
  let isReceiving = false
  return {
    receive: (receiver) => {
      isReceiving = true
      transport.limit(10)
      return transport.receive(receiver)
    },
    limit: (count) => (isReceiving ? transport.limit(count) : undefined),
  }
}

/** The second close waits for the first, which has already ended. */
export function closesOnce(transport: Transport): Partial<Transport> {
  let isClosed = false
  return {
    close: (options) => {
      if (isClosed) return new Promise(() => undefined)
      isClosed = true
      return transport.close(options)
    },
  }
}

/** Drains every dead letter for every control plane; the first release removes it. */
export function drainsForAll(): BrokenWorld {
  const world = memoryFixture(virtual())
  const shared = world.source()
  const open: ReturnType<DeadLetterSource['drain']>[] = []
  return {
    ...world,
    source: () => ({
      source: shared.source,
      replay: shared.replay,
      drain: (options) => {
        // The second control plane gets the batch of the first.
        const batch = open.pop() ?? shared.drain(options)
        if (open.length === 0) open.push(batch)
        return batch
      },
      publish: (replay) => shared.publish(replay),
      confirmations: (options) => shared.confirmations(options),
      depth: () => shared.depth(),
      close: () => Promise.resolve(),
    }),
  }
}

/** Settles all deliveries that are in flight on close. */
export function settlesOnClose(transport: Transport): Partial<Transport> {
  const held = new Set<Delivery>()
  return {
    receive: (receiver) =>
      transport.receive({
        deliver: (delivery) => {
          held.add(delivery)
          receiver.deliver(delivery)
        },
        lost: (delivery) => receiver.lost(delivery),
      }),
    close: async (options) => {
      for (const delivery of held) await transport.enact(delivery, SETTLE)
      await transport.close(options)
    },
  }
}

/** Confirms matching decisions as handled, and then enacts them. */
export const confirms =
  (isMeant: (delivery: Delivery, decision: Decision) => boolean) =>
  (transport: Transport, { broker, queue, clock }: MemoryWorld): Partial<Transport> => ({
    enact: (delivery, decision) => {
      if (isMeant(delivery, decision)) {
        const replay = { ...delivery, replayId: delivery.replayId ?? 'none' }
        const at = clock?.now() ?? 0
        send(broker, replayedQueue(queue), serializeConfirmation(replay, SETTLE, at))
      }
      return transport.enact(delivery, decision)
    },
  })

/** Changes or omits the confirmations of replays. */
export const brokenConfirmations = (
  change: (said: ReplayConfirmation) => ReplayConfirmation | undefined,
): BrokenWorld =>
  brokenConnection((connection) => ({
    publish: (queue, message, delayMs) => {
      if (!queue.endsWith('.replayed')) return connection.publish(queue, message, delayMs)
      const was = JSON.parse(new TextDecoder().decode(message.bytes)) as ReplayConfirmation
      const said = change(was)
      if (said === undefined) return undefined
      const bytes = new TextEncoder().encode(JSON.stringify(said))
      return connection.publish(queue, { ...message, bytes }, delayMs)
    },
  }))

/** Publishes the copy again on a repeated enactment, and only then finds the original gone. */
export function forgetsWhatItCopied(
  transport: Transport,
  { broker, queue }: MemoryWorld,
): Partial<Transport> {
  const copied = new Set<Delivery>()
  return {
    enact: (delivery, decision) => {
      const isCopy = decision.kind === 'deadLetter' || decision.kind === 'retryAt'
      const to = decision.kind === 'retryAt' ? queue : deadLetterQueue(queue)
      if (isCopy && copied.has(delivery)) send(broker, to, delivery.bytes, { id: delivery.id })
      copied.add(delivery)
      return transport.enact(delivery, decision)
    },
  }
}

export const cutsSilently = (transport: Transport): Partial<Transport> => ({
  enact: async (delivery, decision) => {
    const enactment = await transport.enact(delivery, decision)
    return enactment.kind === 'done' ? { ...enactment, truncated: 0 } : enactment
  },
})

export const hidesHeaderProblems = (transport: Transport): Partial<Transport> => ({
  receive: (receiver) =>
    transport.receive({
      deliver: (delivery) => receiver.deliver(Object.assign(delivery, { headerProblems: [] })),
      lost: (delivery) => receiver.lost(delivery),
    }),
})

export const keepsDropped = (transport: Transport): Partial<Transport> => ({
  enact: (delivery, decision) =>
    decision.kind === 'drop'
      ? transport.enact(delivery, { ...decision, kind: 'deadLetter', reason: 'terminal' })
      : transport.enact(delivery, decision),
})

/** Publishes every dead letter and quarantined message to the given queue. */
export const misplaced = (from: RegExp, to: (source: string) => string): BrokenWorld =>
  brokenConnection((connection) => ({
    publish: (queue, message, delayMs) => {
      const source = queue.replace(/\.dlq.*$/, '')
      return connection.publish(from.test(queue) ? to(source) : queue, message, delayMs)
    },
  }))

export const releasesAtOnce = (source: DeadLetterSource): Partial<DeadLetterSource> => ({
  drain: async (options) => {
    const batch = await source.drain(options)
    await batch.release()
    return batch
  },
})

export const neverReleases = (source: DeadLetterSource): Partial<DeadLetterSource> => ({
  drain: async (options) => {
    const batch = await source.drain(options)
    return { ...batch, release: () => batch.abandon() }
  },
})

export const forgetsConfirmationsAtOnce = (
  source: DeadLetterSource,
): Partial<DeadLetterSource> => ({
  confirmations: async (options) => {
    const batch = await source.confirmations(options)
    await batch.release()
    return batch
  },
})

export const neverForgetsConfirmations = (source: DeadLetterSource): Partial<DeadLetterSource> => ({
  confirmations: async (options) => {
    const batch = await source.confirmations(options)
    return { ...batch, release: () => batch.abandon() }
  },
})

/** Changes each dead letter on a drain. */
export const drainsAs = (change: (deadLetter: DrainedDeadLetter) => DrainedDeadLetter) =>
  brokenSource((source) => ({
    drain: async (options) => {
      const batch = await source.drain(options)
      return { ...batch, deadLetters: batch.deadLetters.map(change) }
    },
  }))

export const renamed = (deadLetter: DrainedDeadLetter): DrainedDeadLetter => ({
  ...deadLetter,
  delivery: { ...deadLetter.delivery, id: randomUUID() },
})

/** Publishes a replay with other content than the dead letter. */
export const replaysAs = (change: (delivery: Delivery) => Partial<Delivery>) =>
  brokenSource((source) => ({
    publish: ({ deadLetter, replayId }) => {
      const delivery = { ...deadLetter.delivery, ...change(deadLetter.delivery) }
      return source.publish({ deadLetter: { ...deadLetter, delivery }, replayId })
    },
  }))

/** Empties the dead-letter queue on a restart. */
export function losesOnRestart(): BrokenWorld {
  const world: MemoryWorld = memoryFixture(virtual())
  const connection = world.broker.connect(() => undefined)
  return {
    ...world,
    restart: () => {
      const queue = deadLetterQueue(world.queue)
      const taken = connection.take(queue, 100) as readonly Handed[]
      for (const { tag } of taken) void connection.ack(tag)
      world.restart()
    },
  }
}

/** Ends every transport on a restart. */
export function diesOnRestart(): BrokenWorld {
  const world = memoryFixture(virtual())
  const made: Transport[] = []
  return {
    ...world,
    transport: (fault) => {
      const transport = world.transport(fault)
      made.push(transport)
      return transport
    },
    restart: () => {
      for (const transport of made) void world.crash(transport)
    },
  }
}
