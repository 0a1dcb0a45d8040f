import { type Decision, type Delivery, FIRST_CYCLE, type PolicyOptions } from '@redrive/core'
import {
  CAPABILITIES,
  deadLetterQueue,
  MemoryBroker,
  type MemoryConnection,
  type MemorySend,
  memory,
  memorySource,
  quarantineQueue,
  send,
} from '@redrive/memory'
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

/** Every guard off: a test switches on what it is about. */
export const PLAIN: PolicyOptions = {
  breaker: 'off',
  outage: 'off',
  limit: 'off',
  budget: 'off',
  poison: 'off',
  flood: 'off',
  concurrency: 10,
}

export const QUEUE = 'orders'

export const unreachable = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

export interface WorldOptions {
  readonly capabilities?: Partial<Capabilities>
  /** Puts faults between the transport and the broker. */
  readonly between?: (connection: MemoryConnection) => MemoryConnection
}

/** A broker, a clock that stands still, and what a test wants to see of them. */
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
      consume<Body, Tx>(transport(), handler, { ...PLAIN, ...options, clock }),
    backlog: () => broker.contents(QUEUE).length,
    deadLetters: () => broker.contents(deadLetterQueue(QUEUE)).length,
    quarantined: () => broker.contents(quarantineQueue(QUEUE, 'unknown')).length,
    drain: async (): Promise<readonly DrainedDeadLetter[]> => {
      const source = memorySource({ broker, queue: QUEUE })
      const { deadLetters } = await source.drain({ most: 100 })
      await source.close()
      return deadLetters
    },
  }
}

/** Everything published while the test runs. */
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

export function delivery(id: string, changes: Partial<Delivery> = {}): Delivery {
  return {
    id,
    source: QUEUE,
    lane: undefined,
    key: id,
    type: undefined,
    bytes: new TextEncoder().encode(JSON.stringify({ id })),
    contentType: 'application/json',
    headers: {},
    cycle: FIRST_CYCLE,
    deliveryCount: 1,
    replayId: undefined,
    headerProblems: [],
    ...changes,
  }
}

/** A transport the test plays itself: it delivers by hand and answers as told. */
export class ScriptedTransport implements Transport {
  readonly source: string = QUEUE
  readonly capabilities: Capabilities
  /** What happened, in order: `limit 10`, `pause`, `settle a`, … */
  readonly log: string[] = []
  readonly decisions: { readonly delivery: Delivery; readonly decision: Decision }[] = []
  answer: (delivery: Delivery, decision: Decision) => Awaitable<Enactment> = () => SETTLED
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
    return this.answer(one, decision)
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

  deliver(...deliveries: readonly Delivery[]): void {
    for (const one of deliveries) this.receiver?.deliver(one)
  }
}

export const never = (): Promise<never> => new Promise(() => undefined)
