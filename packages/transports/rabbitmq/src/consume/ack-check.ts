import type { Channel } from 'amqplib'
import { answered, type ManagedConnection } from '../connection/connection.ts'

export interface AckCheckDeps {
  readonly connection: ManagedConnection<Channel>
  /** The prefetch for later consumers. The check repeats it, which changes nothing. */
  readonly prefetch: () => number
  /** Sends the acknowledgements that still wait in this process. */
  readonly flush: () => void
}

/** 2 ms between two checks that the broker received the acknowledgements. Under load, one check covers many; otherwise it starts immediately. */
const CHECK_MS = 2

/** Checks that the broker has received the acknowledgements sent so far. AMQP does not confirm them. */
export class AckCheck {
  readonly #deps: AckCheckDeps
  /** The check that has not started yet. */
  #next: Promise<boolean> | undefined
  #checkedAt = 0

  constructor(deps: AckCheckDeps) {
    this.#deps = deps
  }

  /** Returns whether the broker has read every acknowledgement so far. Concurrent callers share one check. */
  areReceived(): Promise<boolean> {
    this.#next ??= this.#check()
    return this.#next
  }

  async #check(): Promise<boolean> {
    const { connection, prefetch, flush } = this.#deps
    await this.#nextTurn()
    this.#next = undefined
    this.#checkedAt = performance.now()
    const { channel } = connection
    if (channel === undefined) return false
    flush()
    try {
      // Any request works: the broker responds in order.
      await answered(channel.prefetch(prefetch()))
      return true
    } catch (error) {
      connection.reset(channel, error)
      return false
    }
  }

  #nextTurn(): Promise<void> {
    const waitMs = this.#checkedAt + CHECK_MS - performance.now()
    return new Promise((resolve) => {
      if (waitMs > 0) setTimeout(resolve, waitMs)
      else setImmediate(resolve)
    })
  }
}
