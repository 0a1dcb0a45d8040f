import type { Decision, Delivery, PolicyOptions } from '@redrive/core'
import {
  deadLetterQueue,
  MemoryBroker,
  type MemoryConnection,
  type MemorySend,
  memory,
  memorySource,
  quarantineQueue,
  send,
} from '@redrive/memory'
import { aDelivery, GUARDS_OFF } from '@redrive/dev-support'
import { CAPABILITIES } from '@redrive/memory/internal'
import { FakeClock } from '@redrive/testing'
import { onTestFinished } from 'vitest'
import {
  type Awaitable,
  type Capabilities,
  type Consumer,
  type ConsumeOptions,
  consume,
  type DrainedDeadLetter,
  type Enactment,
  type Handler,
  onEvent,
  type Receiver,
  type RedriveEvent,
  SETTLED,
  type Transport,
} from '../src/index.ts'

/** Every guard is off. A test switches on the guards it needs. */
export const PLAIN: PolicyOptions = { ...GUARDS_OFF, concurrency: 10 }

export const QUEUE = 'orders'

export const unreachable = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

export interface WorldOptions {
  readonly capabilities?: Partial<Capabilities>
  /** Adds faults between the transport and the broker. */
  readonly between?: (connection: MemoryConnection) => MemoryConnection
}

/** A broker, a clock that only tests advance, and helpers to observe them. */
export function world({ capabilities = {}, between = (inner) => inner }: WorldOptions = {}) {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const connect = (onLost: () => void) => between(broker.connect(onLost))
  const transport = () => memory({ broker, queue: QUEUE, connect, capabilities })
  return {
    clock,
    broker,
    transport,
    send: (body: unknown, options: MemorySend = {}) => send(broker, QUEUE, body, options),
    start: <Body = unknown, Tx = undefined>(
      handler: Handler<Body, Tx>,
      options: ConsumeOptions<Body, Tx> = {},
    ): Promise<Consumer> =>
      consume<Body, Tx>(transport(), handler, { ...PLAIN, logger: 'off', ...options, clock }),
    backlog: () => broker.contents(QUEUE).length,
    deadLetters: () => broker.contents(deadLetterQueue(QUEUE)).length,
    quarantined: () => broker.contents(quarantineQueue(QUEUE, 'unknown')).length,
    drain: async (): Promise<readonly DrainedDeadLetter[]> => {
      const source = memorySource({ broker, queue: QUEUE })
      const { deadLetters } = await source.drain({ limit: 100 })
      await source.close()
      return deadLetters
    },
  }
}

/** Returns all events published while the test runs. */
export function events(): RedriveEvent[] {
  const seen: RedriveEvent[] = []
  onTestFinished(onEvent((event) => void seen.push(event)))
  return seen
}

type OfType<T extends RedriveEvent['type']> = Extract<RedriveEvent, { type: T }>

export const ofType = <T extends RedriveEvent['type']>(
  seen: readonly RedriveEvent[],
  type: T,
): readonly OfType<T>[] => seen.filter((event): event is OfType<T> => event.type === type)

export const delivery = (id: string, changes: Partial<Delivery> = {}): Delivery =>
  aDelivery(id, {
    source: QUEUE,
    bytes: new TextEncoder().encode(JSON.stringify({ id })),
    contentType: 'application/json',
    ...changes,
  })

/** A transport that the test controls: it delivers on command and returns the configured results. */
export class ScriptedTransport implements Transport {
  readonly source: string = QUEUE
  readonly capabilities: Capabilities
  /** The calls in order: `limit 10`, `pause`, `settle a`, … */
  readonly log: string[] = []
  readonly decisions: { readonly delivery: Delivery; readonly decision: Decision }[] = []
  result: (delivery: Delivery, decision: Decision) => Awaitable<Enactment> = () => SETTLED
  onPause: () => Awaitable<void> = () => undefined
  receiver: Receiver | undefined

  constructor(capabilities: Partial<Capabilities> = {}) {
    this.capabilities = { ...CAPABILITIES, ...capabilities }
  }

  open(): Promise<void> {
    this.log.push('open')
    return Promise.resolve()
  }
  receive(receiver: Receiver): void {
    this.receiver = receiver
  }
  enact(one: Delivery, decision: Decision): Awaitable<Enactment> {
    this.log.push(`${decision.kind} ${one.id}`)
    this.decisions.push({ delivery: one, decision })
    return this.result(one, decision)
  }
  limit(count: number): void {
    this.log.push(`limit ${count}`)
  }
  pause(): Awaitable<void> {
    this.log.push('pause')
    return this.onPause()
  }
  resume(): void {
    this.log.push('resume')
  }
  close(): Promise<void> {
    this.log.push('close')
    return Promise.resolve()
  }

  /** Delays the next pause until the returned function is called. */
  holdPause(): () => void {
    let takeEffect: () => void = () => undefined
    this.onPause = () =>
      new Promise((resolve) => {
        takeEffect = resolve
      })
    return () => takeEffect()
  }

  deliver(...deliveries: readonly Delivery[]): void {
    for (const one of deliveries) this.receiver?.deliver(one)
  }
}

/** A scripted transport, a clock that only tests advance, and a consumer without guards. */
export function scripted(capabilities: Partial<Capabilities> = {}) {
  const clock = new FakeClock()
  const transport = new ScriptedTransport(capabilities)
  const start = (handler: Handler<unknown, undefined>, options: ConsumeOptions = {}) =>
    consume(transport, handler, { ...PLAIN, logger: 'off', ...options, clock })
  return { clock, transport, start }
}

export const never = (): Promise<never> => new Promise(() => undefined)

/** A handler that passes its signal on: it ends when the signal fires. */
export const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })

/** Returns a value that throws on each access. */
export function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
