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
  writeConfirmation,
} from '@redrive/runtime'
import { FakeClock, type MemoryWorld, memoryWorld, type TransportWorld } from '../src/index.ts'

/** Worlds whose transport breaks one promise each. */

export interface BrokenWorld extends TransportWorld {
  restart(): void
}

const virtual = () => ({ clock: new FakeClock() })

/** A fault on the way between the transport and the broker. */
export function brokenConnection(
  change: (connection: MemoryConnection) => Partial<MemoryConnection>,
): BrokenWorld {
  return memoryWorld({
    ...virtual(),
    between: (connection) => ({ ...plain(connection), ...change(connection) }),
  })
}

/** The methods as properties, so that some can be replaced. */
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

/** Every copy is changed on its way. */
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

/** Every delivery is changed on its way. */
export const brokenHandOuts = (change: (handed: Handed) => Handed): BrokenWorld =>
  brokenConnection((connection) => ({
    subscribe: (queue, listener) =>
      connection.subscribe(queue, (handed) => listener(change(handed))),
  }))

/** A fault in the transport itself. */
export function brokenTransport(
  change: (transport: Transport, world: MemoryWorld) => Partial<Transport>,
): BrokenWorld {
  const world = memoryWorld(virtual())
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

/** A fault on the control plane's side. */
export function brokenSource(
  change: (source: DeadLetterSource) => Partial<DeadLetterSource>,
): BrokenWorld {
  const world = memoryWorld(virtual())
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

/** Releases the original, and only then makes the copy. */
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
        // Nobody looks at it.
      }
    },
  }
}

/** A pause gives back what is in hand. */
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
          // A turn, or it would be handed out and returned for ever without one.
          await new Promise((resolve) => setImmediate(resolve))
        },
      }
    },
  }
}

/** Hands out whatever comes, paused or not. */
export function ignoresPause(connection: MemoryConnection): Partial<MemoryConnection> {
  return {
    subscribe: (queue, listener) => {
      const subscription = connection.subscribe(queue, (handed) =>
        // A turn later, or a return would be handed out again before it has returned.
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

/** A message that returns goes to the end. */
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

/** Ignores a pause until it has received once. */
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

/** The second close waits for the first, which has ended. */
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

/** Every control plane gets every dead letter; the first release removes it. */
export function drainsForAll(): BrokenWorld {
  const world = memoryWorld(virtual())
  const shared = world.source()
  const open: ReturnType<DeadLetterSource['drain']>[] = []
  return {
    ...world,
    source: () => ({
      source: shared.source,
      replay: shared.replay,
      drain: (options) => {
        // The second of two gets the batch of the first.
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

/** Whatever is still in hand at the end is taken for done. */
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

/** Says of what it is asked about that it was handled, and then does what it is asked. */
export const confirms =
  (isMeant: (delivery: Delivery, decision: Decision) => boolean) =>
  (transport: Transport, { broker, queue, clock }: MemoryWorld): Partial<Transport> => ({
    enact: (delivery, decision) => {
      if (isMeant(delivery, decision)) {
        const replay = { ...delivery, replayId: delivery.replayId ?? 'none' }
        const at = clock?.now() ?? 0
        send(broker, replayedQueue(queue), writeConfirmation(replay, SETTLE, at))
      }
      return transport.enact(delivery, decision)
    },
  })

/** What is said about replays is changed on its way, or not said. */
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

/** Asked again, it makes the copy again, and only then finds the original gone. */
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

/** Every dead letter and quarantined message goes to the queue named. */
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

/** Each dead letter is changed when it is drained. */
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

/** A replay with something else in it than the dead letter had. */
export const replaysAs = (change: (delivery: Delivery) => Partial<Delivery>) =>
  brokenSource((source) => ({
    publish: ({ deadLetter, replayId }) => {
      const delivery = { ...deadLetter.delivery, ...change(deadLetter.delivery) }
      return source.publish({ deadLetter: { ...deadLetter, delivery }, replayId })
    },
  }))

/** A restart empties the dead-letter queue. */
export function losesOnRestart(): BrokenWorld {
  const world: MemoryWorld = memoryWorld(virtual())
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

/** A restart is the end of every transport there is. */
export function diesOnRestart(): BrokenWorld {
  const world = memoryWorld(virtual())
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
