import { RedriveError } from '@redrive/core'
import type {
  Handed,
  MemoryBroker,
  MemoryConnection,
  MemoryMessage,
  MemorySubscription,
} from '@redrive/memory'
import type { SeededRandom } from '@redrive/testing'
import { between } from './random.ts'
import type { VirtualTime } from '@redrive/storm'

/** What the link between a process and the broker does to requests right now. */
export interface LinkWeather {
  /** Probability that a request, or else its answer, is lost. */
  loss(): number
  disrupted(id: string, why: string): void
}

/** How long a client waits for an answer before it calls the outcome unknown. */
const ANSWER_TIMEOUT_MS = 2_000
const LONGEST_LATENCY_MS = 20

/**
 * The network between one process and the broker: every request and every answer takes time, may be
 * lost, and keeps travelling when the process that sent it is dead.
 */
export class Link implements MemoryConnection {
  readonly #time: VirtualTime
  readonly #random: SeededRandom
  readonly #weather: LinkWeather
  readonly #inner: MemoryConnection
  readonly #inHand = new Map<number, string>()
  #isLost = false
  #pauses = 0
  isAlive = true

  constructor(
    broker: MemoryBroker,
    {
      time,
      random,
      weather,
      onLost,
    }: { time: VirtualTime; random: SeededRandom; weather: LinkWeather; onLost: () => void },
  ) {
    this.#time = time
    this.#random = random
    this.#weather = weather
    this.#inner = broker.connect(() => {
      this.#disruptAll('connection lost')
      this.#isLost = true
      time.after(this.#latency(), () => {
        if (this.isAlive) onLost()
      })
    })
  }

  /** The process is gone. The broker notices when the connection times out. */
  die(noticedAfterMs: number): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.#time.after(noticedAfterMs, () => {
      this.#disruptAll('process died')
      this.#inner.close()
    })
  }

  get inHand(): readonly string[] {
    return this.isAlive ? [...this.#inHand.values()] : []
  }

  #disruptAll(why: string): void {
    for (const id of this.#inHand.values()) this.#weather.disrupted(id, why)
    this.#inHand.clear()
  }

  publish(queue: string, message: MemoryMessage, delayMs: number): Promise<void> {
    return this.#request(
      message.id,
      'publish',
      () => void this.#inner.publish(queue, message, delayMs),
    )
  }

  ack(tag: number): Promise<boolean> {
    return this.#settle(tag, 'ack', () => this.#inner.ack(tag) as boolean)
  }

  release(tag: number): Promise<boolean> {
    return this.#settle(tag, 'release', () => this.#inner.release(tag) as boolean)
  }

  #settle(tag: number, what: string, act: () => boolean): Promise<boolean> {
    return this.#request(this.#inHand.get(tag), what, () => {
      const isOurs = act()
      this.#inHand.delete(tag)
      return isOurs
    })
  }

  #request<T>(id: string | undefined, what: string, act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.isAlive) return
      const answer = (settle: () => void, afterMs: number) =>
        this.#time.after(afterMs, () => {
          if (this.isAlive) settle()
        })
      const unknown = (lost: string) => {
        if (id !== undefined) this.#weather.disrupted(id, `${what}: ${lost} lost`)
        const error = new RedriveError('OUTCOME_UNKNOWN', `${what}: no answer`)
        answer(() => reject(error), ANSWER_TIMEOUT_MS)
      }
      this.#time.after(this.#latency(), () => {
        if (this.#random.chance(this.#weather.loss() / 2)) return unknown('request')
        try {
          const result = act()
          if (this.#random.chance(this.#weather.loss())) return unknown('answer')
          answer(() => resolve(result), this.#latency())
        } catch (error) {
          answer(() => reject(error), this.#latency())
        }
      })
    })
  }

  subscribe(queue: string, listener: (handed: Handed) => void): MemorySubscription {
    // The client has not yet heard that the connection is gone; nothing will come over it.
    if (this.#isLost) return { limit: () => {}, pause: () => {}, resume: () => {} }
    const inner = this.#inner.subscribe(queue, (handed) => {
      this.#inHand.set(handed.tag, handed.message.id)
      this.#time.after(this.#latency(), () => {
        if (this.isAlive) listener(handed)
      })
    })
    return {
      limit: (count) => inner.limit(count),
      pause: () => this.#pause(inner),
      resume: () => {
        this.#pauses += 1
        inner.resume()
      },
    }
  }

  /** Takes effect when the request arrives; the answer comes behind everything sent before it. */
  #pause(inner: MemorySubscription): Promise<void> {
    const pause = ++this.#pauses
    return new Promise((resolve) => {
      this.#time.after(this.#latency(), () => {
        if (pause === this.#pauses) void inner.pause()
        this.#time.after(LONGEST_LATENCY_MS + 1, () => {
          if (this.isAlive) resolve()
        })
      })
    })
  }

  take(queue: string, most: number): readonly Handed[] {
    return this.#inner.take(queue, most) as readonly Handed[]
  }

  depth(queue: string): number {
    return this.#inner.depth(queue) as number
  }

  queues(prefix: string): readonly string[] {
    return this.#inner.queues(prefix) as readonly string[]
  }

  close(): void {
    this.#disruptAll('connection closed')
    this.#inner.close()
  }

  #latency(): number {
    return between(this.#random, 0, LONGEST_LATENCY_MS)
  }
}
