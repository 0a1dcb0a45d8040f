import { type MemoryBroker, memory } from '@redrive/memory'
import { CAPABILITIES } from '@redrive/memory/internal'
import { type Clock, type Consumer, consume, type Handler, type Inbox } from '@redrive/runtime'
import type { SeededRandom } from '@redrive/testing'
import { Link, type LinkWeather } from './link.ts'
import { between } from './random.ts'
import type { Scenario } from './scenario.ts'
import type { VirtualTime } from '@redrive/storm/internal'

export interface ProcessDeps {
  readonly index: number
  readonly scenario: Scenario
  readonly broker: MemoryBroker
  readonly time: VirtualTime
  readonly random: SeededRandom
  readonly weather: LinkWeather
  /** Returns the handler of this process. */
  readonly handler: (process: SimulatedProcess) => Handler<MessageBody, unknown>
  readonly inbox: ((process: SimulatedProcess) => Inbox) | undefined
}

export interface MessageBody {
  readonly id: string
}

/** One life of a consumer process: production code with a separate clock and link. */
export class SimulatedProcess {
  readonly index: number
  readonly #parts: ProcessDeps
  readonly #links: Link[] = []
  #consumer: Consumer | undefined
  isAlive = true

  constructor(parts: ProcessDeps) {
    this.index = parts.index
    this.#parts = parts
  }

  start(): void {
    const { scenario, broker, time, random, weather, handler, inbox } = this.#parts
    const shared = memory({
      broker,
      queue: QUEUE,
      capabilities: {
        delay: { ...CAPABILITIES.delay, kind: 'native', longestMs: scenario.longestDelayMs },
      },
      connect: (onLost) => {
        const link = new Link(broker, { time, random, weather, onLost })
        this.#links.push(link)
        return link
      },
    })
    // All simulated processes are in one real process. A handler of a dead one does not run.
    const transport = Object.assign(shared, { group: { name: QUEUE, owner: this } })
    consume<MessageBody, unknown>(transport, handler(this), {
      ...scenario.policy,
      ...(inbox === undefined ? {} : { inbox: inbox(this) }),
      clock: this.clock,
      random: random,
      logger: 'off',
    }).then(
      (consumer) => {
        this.#consumer = consumer
      },
      (error: unknown) => {
        throw error
      },
    )
  }

  /** The time as this process sees it: skewed, and only while it lives. */
  get clock(): Clock {
    const { time, scenario, index } = this.#parts
    const skewMs = scenario.skewMs[index] ?? 0
    return {
      now: () => time.now() + skewMs,
      after: (delayMs, callback) =>
        time.after(delayMs, () => {
          if (this.isAlive) callback()
        }),
    }
  }

  /** Resolves after this time, unless the process dies first. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }

  get inFlight(): readonly string[] {
    return this.#links.flatMap((link) => link.inFlight)
  }

  crash(): void {
    this.isAlive = false
    const noticedAfterMs = this.#parts.random.chance(0.7)
      ? 0
      : between(this.#parts.random, 0, 10_000)
    for (const link of this.#links) link.die(noticedAfterMs)
  }

  async stop(): Promise<void> {
    await this.#consumer?.stop({ drain: '5s' })
    this.isAlive = false
    for (const link of this.#links) link.die(0)
  }

  get isIdle(): boolean {
    const stats = this.#consumer?.stats()
    if (stats === undefined) return false
    return stats.running + stats.waiting + stats.settling === 0
  }
}

export const QUEUE = 'orders'
