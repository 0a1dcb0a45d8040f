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
import type { VirtualTime } from '@redrive/storm/internal'

/** The current effect of the link between a process and the broker on requests. */
export interface LinkWeather {
  /** Returns the probability that a request, or else its response, is lost. */
  loss(): number
  disrupted(id: string, why: string): void
  /** Called when the process receives a delivery (1), and when it settles, returns or loses it (-1). */
  owned(id: string, change: 1 | -1): void
}

/** How long a client waits for a response before the outcome counts as unknown. */
const ANSWER_TIMEOUT_MS = 2_000
const LONGEST_LATENCY_MS = 20

/**
 * The network between one process and the broker. Every request and response takes time and may be
 * lost. It keeps travelling when the process that sent it is dead.
 */
export class Link implements MemoryConnection {
  readonly #time: VirtualTime
  readonly #random: SeededRandom
  readonly #weather: LinkWeather
  readonly #inner: MemoryConnection
  readonly #inFlight = new Map<number, string>()
  /** The deliveries that the process has, by its own knowledge. */
  readonly #owned = new Map<number, string>()
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
        if (!this.isAlive) return
        for (const tag of [...this.#owned.keys()]) this.#giveUp(tag)
        onLost()
      })
    })
  }

  /** Ends the process. The broker notices it when the connection times out. */
  die(noticedAfterMs: number): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.#time.after(noticedAfterMs, () => {
      this.#disruptAll('process died')
      this.#inner.close()
    })
  }

  get inFlight(): readonly string[] {
    return this.isAlive ? [...this.#inFlight.values()] : []
  }

  #disruptAll(why: string): void {
    for (const id of this.#inFlight.values()) this.#weather.disrupted(id, why)
    this.#inFlight.clear()
  }

  #giveUp(tag: number): void {
    const id = this.#owned.get(tag)
    if (id === undefined) return
    this.#owned.delete(tag)
    this.#weather.owned(id, -1)
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
    this.#giveUp(tag)
    return this.#request(this.#inFlight.get(tag), what, () => {
      const isOurs = act()
      this.#inFlight.delete(tag)
      return isOurs
    })
  }

  #request<T>(id: string | undefined, what: string, act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.isAlive) return
      const answer = (settle: () => void, afterMs: number, unheard?: () => void) =>
        this.#time.after(afterMs, () => (this.isAlive ? settle() : unheard?.()))
      const unknown = (lost: string) => {
        if (id !== undefined) this.#weather.disrupted(id, `${what}: ${lost} lost`)
        const error = new RedriveError('OUTCOME_UNKNOWN', `${what}: no response`)
        answer(() => reject(error), ANSWER_TIMEOUT_MS)
      }
      this.#time.after(this.#latency(), () => {
        if (this.#random.chance(this.#weather.loss() / 2)) return unknown('request')
        try {
          const result = act()
          if (this.#random.chance(this.#weather.loss())) return unknown('answer')
          // A process that dies before the response does not report what it returned.
          const unheard = () => {
            if (what === 'release' && id !== undefined)
              this.#weather.disrupted(id, 'release: the process died before the response')
          }
          answer(() => resolve(result), this.#latency(), unheard)
        } catch (error) {
          answer(() => reject(error), this.#latency())
        }
      })
    })
  }

  subscribe(queue: string, listener: (handed: Handed) => void): MemorySubscription {
    // The client has not noticed yet that the connection is lost; nothing will arrive over it.
    if (this.#isLost) return { limit: () => {}, pause: () => {}, resume: () => {} }
    const inner = this.#inner.subscribe(queue, (handed) => {
      this.#inFlight.set(handed.tag, handed.message.id)
      this.#time.after(this.#latency(), () => {
        if (!this.isAlive) return
        this.#owned.set(handed.tag, handed.message.id)
        this.#weather.owned(handed.message.id, 1)
        listener(handed)
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

  /** Takes effect when the request arrives; the response follows everything that was sent before it. */
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
