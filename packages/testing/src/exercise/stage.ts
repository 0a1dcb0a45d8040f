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
import { Patience } from './patience.ts'
import { misplaced, type Places } from './places.ts'
import { Tap } from './tap.ts'
import type { TransportFault, TransportWorld, WorldAbility } from './world.ts'

export interface StageParts {
  readonly world: TransportWorld
  readonly capabilities: Capabilities
  readonly deadlineMs: number
  readonly restartBroker: () => Awaitable<void>
}

/** Where one scenario plays: its world, its actors, and the looking that all scenarios share. */
export class Stage extends Patience {
  readonly world: TransportWorld
  readonly capabilities: Capabilities
  readonly restartBroker: () => Awaitable<void>
  /** What the runtime reported about this world's source. */
  readonly events: RedriveEvent[] = []
  readonly evidence: Evidence = new Evidence()
  readonly #closers: Closer[] = []
  #source: DeadLetterSource | undefined

  constructor({ world, capabilities, deadlineMs, restartBroker }: StageParts) {
    super(world.clock ?? systemClock, deadlineMs)
    this.world = world
    this.capabilities = capabilities
    this.restartBroker = restartBroker
  }

  // ---- actors ---------------------------------------------------------------------------------

  /** A new transport on the source, not yet open; its events are kept for a failure. */
  transport(fault?: TransportFault): Transport {
    return this.#watched(this.world.transport(fault))
  }

  #watched(transport: Transport): Transport {
    this.#listen(transport.source)
    this.#closers.push({ name: 'transport.close()', close: () => transport.close({ drainMs: 0 }) })
    return transport
  }

  /** A transport in the hands of the scenario: nothing is decided for it. */
  async tap(options: TapOptions = {}): Promise<Tap> {
    const { fault, limit = 100, isPaused = false, needs } = options
    const transport = this.#watched(options.transport ?? this.world.transport(fault))
    const tap = new Tap(this, transport, this.evidence)
    await this.within('the transport opens', transport.open(needs))
    if (isPaused) await this.within('the transport pauses', transport.pause())
    transport.limit(limit)
    await this.within('the transport begins to receive', transport.receive(tap))
    return tap
  }

  /** A consumer with every guard off but those the scenario asks for. */
  async consume<Tx = undefined>(
    handler: Handler<unknown, Tx>,
    options: ConsumeOptions<unknown, Tx> = {},
    transport: Transport = this.transport(),
  ): Promise<Consumer> {
    const consumer = await this.within(
      'the consumer starts',
      consume<unknown, Tx>(transport, handler, {
        ...this.policy(),
        ...options,
        clock: this.clock,
      }),
    )
    this.#closers.push({ name: 'consumer.stop()', close: () => consumer.stop({ drain: 0 }) })
    return consumer
  }

  /** Guards off, and every retry through the broker where it can delay at all. */
  policy(): PolicyOptions {
    const canDelay = this.capabilities.delay.kind !== 'none'
    return {
      breaker: 'off',
      outage: 'off',
      limit: 'off',
      budget: 'off',
      poison: 'off',
      flood: 'off',
      concurrency: 10,
      retry: this.retry(canDelay ? 0 : '5m'),
    }
  }

  retry(inlineBelow: 0 | '5m'): NonNullable<PolicyOptions['retry']> {
    return { inlineBelow, floor: 1, backoff: { kind: 'fixed', delay: 20 } }
  }

  /** The control plane's side, the same one all through the scenario. */
  source(): DeadLetterSource {
    this.#source ??= this.controlPlane()
    return this.#source
  }

  /** Another control plane, as another process would have it. */
  controlPlane(source: DeadLetterSource = this.world.source()): DeadLetterSource {
    this.#closers.push({ name: 'source.close()', close: () => source.close() })
    return source
  }

  /** Returns the world with this hook; fails when the world neither has it nor gives a reason. */
  having<Hook extends Exclude<WorldAbility, 'lag'>>(hook: Hook): WorldWith<Hook> {
    assert.ok(this.world[hook] !== undefined, missing(`world.${hook}`, hook))
    return this.world as WorldWith<Hook>
  }

  /** Reads the lag of the source; fails when the source has none and the world gives no reason. */
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

  // ---- looking --------------------------------------------------------------------------------

  /** Where the messages of this world are, all of them. */
  async places(expected: Places): Promise<void> {
    let seen: unknown
    const source = this.source()
    const look = async () => ({
      backlog: await this.world.backlog(),
      deadLetters: await source.depth(),
    })
    try {
      await this.until('messages are where they belong', async () => {
        // A broker that has just been restarted may not know yet.
        seen = await look().catch((error: unknown) => error)
        return isDeepStrictEqual(seen, expected)
      })
    } catch (cause) {
      // Never seen: the first look did not return.
      if (seen === undefined) throw cause
      assert.deepEqual(seen, expected, misplaced(seen, expected))
      throw cause
    }
  }

  /** Reads that many dead letters through the control plane and takes them off the broker. */
  async drain(count: number): Promise<readonly DrainedDeadLetter[]> {
    const drained: DrainedDeadLetter[] = []
    await this.until(`${count} dead letters can be drained`, async () => {
      const batch = await this.source().drain({ most: count })
      drained.push(...batch.deadLetters)
      await batch.release()
      return drained.length >= count
    })
    return drained
  }

  /** The one dead letter there is. */
  async drainOne(): Promise<DrainedDeadLetter> {
    const [deadLetter] = await this.drain(1)
    assert.ok(deadLetter !== undefined)
    return deadLetter
  }

  /** Reads that many confirmations through the control plane and lets the broker forget them; no more may come. */
  async confirmed(count: number): Promise<readonly ReplayConfirmation[]> {
    const heard: ReplayConfirmation[] = []
    const listen = async () => {
      const batch = await this.source().confirmations({ most: MOST_CONFIRMATIONS })
      heard.push(...batch.confirmations)
      await batch.release()
      return heard.length >= count
    }
    if (count > 0) await this.until(`${count} replays are confirmed`, listen)
    await this.quiet()
    await listen()
    assert.equal(heard.length, count, 'confirmations, no more than those')
    return heard
  }

  /** Enactments of that kind of decision, in the order they were reported. */
  enacted(kind: Decision['kind']): readonly Enacted[] {
    return this.events.filter(
      (event): event is Enacted => event.type === 'enacted' && event.decision.kind === kind,
    )
  }

  /** Closes everything, also when one of them does not close; rejects with the first problem. */
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
  /** The call, for a failure. */
  readonly name: string
  readonly close: () => Awaitable<unknown>
}

export interface TapOptions {
  readonly fault?: TransportFault
  /** Default: a new one of the world. */
  readonly transport?: Transport
  readonly limit?: number
  /** Pauses before it receives. */
  readonly isPaused?: boolean
  readonly needs?: TransportNeeds
}

type WorldWith<Hook extends WorldAbility> = TransportWorld &
  Required<Pick<TransportWorld, Hook & keyof TransportWorld>>

const missing = (name: string, ability: WorldAbility) =>
  `${name} is missing: implement it, or give the reason in world.cannot.${ability}`

/** Far more than a scenario causes. */
const MOST_CONFIRMATIONS = 100

type Enacted = Extract<RedriveEvent, { type: 'enacted' }>
