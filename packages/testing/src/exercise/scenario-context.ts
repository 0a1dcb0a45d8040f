import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Decision, PolicyOptions } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Consumer,
  type ConsumeOptions,
  consume,
  type DeadLetterSource,
  type DrainedDeadLetter,
  type Handler,
  onEvent,
  type RedriveEvent,
  type ReplayConfirmation,
  systemClock,
  type Transport,
  type TransportNeeds,
} from '@redrive/runtime'
import { Evidence } from './evidence.ts'
import { Polling } from './polling.ts'
import { describeCounts, type Places } from './places.ts'
import { RecordingReceiver } from './recording-receiver.ts'
import type { TransportFault, TransportFixture, WorldAbility } from './world.ts'

export interface ScenarioOptions {
  readonly world: TransportFixture
  readonly capabilities: Capabilities
  readonly deadlineMs: number
  readonly restartBroker: () => Awaitable<void>
}

/** The context of one scenario: its fixture, its actors, and the checks that all scenarios share. */
export class ScenarioContext extends Polling {
  readonly world: TransportFixture
  readonly capabilities: Capabilities
  readonly restartBroker: () => Awaitable<void>
  /** Events of the runtime about this fixture's source. */
  readonly events: RedriveEvent[] = []
  readonly evidence: Evidence = new Evidence()
  readonly #closers: Closer[] = []
  #source: DeadLetterSource | undefined

  constructor({ world, capabilities, deadlineMs, restartBroker }: ScenarioOptions) {
    super(world.clock ?? systemClock, deadlineMs)
    this.world = world
    this.capabilities = capabilities
    this.restartBroker = restartBroker
  }

  // ---- actors ---------------------------------------------------------------------------------

  /** Creates a transport on the source, not yet open. Its events are kept to explain a failure. */
  transport(fault?: TransportFault): Transport {
    return this.#watched(this.world.transport(fault))
  }

  #watched(transport: Transport): Transport {
    this.#listen(transport.source)
    this.#closers.push({ name: 'transport.close()', close: () => transport.close({ drainMs: 0 }) })
    return transport
  }

  /** Opens a transport that the scenario controls: no decision is made for it. */
  async receiver(options: ReceiverOptions = {}): Promise<RecordingReceiver> {
    const { fault, limit = 100, isPaused = false, needs } = options
    const transport = this.#watched(options.transport ?? this.world.transport(fault))
    const receiver = new RecordingReceiver(this, transport, this.evidence)
    await this.within('the transport opens', transport.open(needs))
    if (isPaused) await this.within('the transport pauses', transport.pause())
    transport.limit(limit)
    await this.within('the transport begins to receive', transport.receive(receiver))
    return receiver
  }

  /** Starts a consumer. Every guard is off, except the guards of the scenario. */
  async consume<Tx = undefined>(
    handler: Handler<unknown, Tx>,
    options: ConsumeOptions<unknown, Tx> = {},
    transport: Transport = this.transport(),
  ): Promise<Consumer> {
    // Each consumer stands for a process: it does not see the runs of the others.
    const group = { name: transport.source, owner: transport }
    Object.defineProperty(transport, 'group', { value: group })
    const consumer = await this.within(
      'the consumer starts',
      consume<unknown, Tx>(transport, handler, {
        ...this.policy(),
        logger: 'off',
        ...options,
        clock: this.clock,
      }),
    )
    this.#closers.push({ name: 'consumer.stop()', close: () => consumer.stop({ drain: 0 }) })
    return consumer
  }

  /** Returns a policy with guards off. Every retry goes through the broker if it can delay. */
  policy(): PolicyOptions {
    const canDelay = this.capabilities.delay.kind !== 'none'
    return {
      breaker: 'off',
      outage: 'off',
      adaptiveConcurrency: 'off',
      retryBudget: 'off',
      poison: 'off',
      flood: 'off',
      concurrency: 10,
      retry: this.retry(canDelay ? 0 : '5m'),
    }
  }

  retry(maxInlineDelay: 0 | '5m'): NonNullable<PolicyOptions['retry']> {
    return { maxInlineDelay: maxInlineDelay, minDelay: 1, backoff: { kind: 'fixed', delay: 20 } }
  }

  /** Returns the control-plane side, always the same one within the scenario. */
  source(): DeadLetterSource {
    this.#source ??= this.controlPlane()
    return this.#source
  }

  /** Returns another control plane, as another process would have it. */
  controlPlane(source: DeadLetterSource = this.world.source()): DeadLetterSource {
    this.#closers.push({ name: 'source.close()', close: () => source.close() })
    return source
  }

  /** Returns the fixture with this hook. Fails when the fixture has neither the hook nor a reason. */
  having<Hook extends Exclude<WorldAbility, 'lag'>>(hook: Hook): WorldWith<Hook> {
    assert.ok(this.world[hook] !== undefined, missing(`world.${hook}`, hook))
    return this.world as WorldWith<Hook>
  }

  /** Reads the lag of the source. Fails when the source has none and the fixture gives no reason. */
  async lag(): Promise<number> {
    const count = await this.source().lag?.()
    assert.ok(count !== undefined, missing('lag() of the source', 'lag'))
    return count
  }

  readonly #sources = new Set<string>()

  #listen(source: string): void {
    if (this.#sources.has(source)) return
    this.#sources.add(source)
    const off = onEvent((event) => {
      if (event.source !== source) return
      this.events.push(event)
      this.evidence.add(event)
    })
    this.#closers.push({ name: 'the listener', close: off })
  }

  // ---- checks ---------------------------------------------------------------------------------

  /** Asserts how many messages are in the source and in the dead-letter queue. */
  async places(expected: Places): Promise<void> {
    let seen: unknown
    const source = this.source()
    const readCounts = async () => ({
      backlog: await this.world.backlog(),
      deadLetters: await source.depth(),
    })
    try {
      await this.until('messages are in the expected queues', async () => {
        // A broker that has just been restarted may not have the counts yet.
        seen = await readCounts().catch((error: unknown) => error)
        return isDeepStrictEqual(seen, expected)
      })
    } catch (cause) {
      // No count was read: the first check did not return.
      if (seen === undefined) throw cause
      assert.deepEqual(seen, expected, describeCounts(seen, expected))
      throw cause
    }
  }

  /** Reads that many dead letters through the control plane and removes them from the broker. */
  async drain(count: number): Promise<readonly DrainedDeadLetter[]> {
    const drained: DrainedDeadLetter[] = []
    await this.until(`${count} dead letters can be drained`, async () => {
      const batch = await this.source().drain({ limit: count })
      drained.push(...batch.deadLetters)
      await batch.release()
      return drained.length >= count
    })
    return drained
  }

  /** Drains the only dead letter. */
  async drainOne(): Promise<DrainedDeadLetter> {
    const [deadLetter] = await this.drain(1)
    assert.ok(deadLetter !== undefined)
    return deadLetter
  }

  /** Reads that many confirmations through the control plane and releases them. Fails when more arrive. */
  async confirmed(count: number): Promise<readonly ReplayConfirmation[]> {
    const received: ReplayConfirmation[] = []
    const listen = async () => {
      const batch = await this.source().confirmations({ limit: MAX_CONFIRMATIONS })
      received.push(...batch.confirmations)
      await batch.release()
      return received.length >= count
    }
    if (count > 0) await this.until(`${count} replays are confirmed`, listen)
    await this.quiet()
    await listen()
    assert.equal(received.length, count, 'number of confirmations')
    return received
  }

  /** Returns the enactments of that kind of decision, in the order they were reported. */
  enacted(kind: Decision['kind']): readonly Enacted[] {
    return this.events.filter(
      (event): event is Enacted => event.type === 'enacted' && event.decision.kind === kind,
    )
  }

  /** Closes everything, also when one close fails; rejects with the first problem. */
  async close(): Promise<void> {
    const world = { name: 'world.close()', close: () => this.world.close() }
    const problems: unknown[] = []
    for (const { name, close } of [...this.#closers.reverse(), world]) {
      try {
        await this.within(`${name} resolves`, close())
      } catch (error) {
        problems.push(error)
      }
    }
    if (problems.length > 0) throw problems[0]
  }
}

interface Closer {
  /** The name of the call, for an error. */
  readonly name: string
  readonly close: () => Awaitable<unknown>
}

export interface ReceiverOptions {
  readonly fault?: TransportFault
  /** Default: a new one of the fixture. */
  readonly transport?: Transport
  readonly limit?: number
  /** Pauses before it receives. */
  readonly isPaused?: boolean
  readonly needs?: TransportNeeds
}

type WorldWith<Hook extends WorldAbility> = TransportFixture &
  Required<Pick<TransportFixture, Hook & keyof TransportFixture>>

const missing = (name: string, ability: WorldAbility) =>
  `${name} is missing. Implement it, or set the reason in world.cannot.${ability}.`

/** Far more than a scenario produces. */
const MAX_CONFIRMATIONS = 100

type Enacted = Extract<RedriveEvent, { type: 'enacted' }>
