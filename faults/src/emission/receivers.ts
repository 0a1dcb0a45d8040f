import { freePort } from '../harness/listening.ts'
import { type Child, startChild } from '../harness/process.ts'
import { until } from '../harness/wait.ts'
import type { Span } from '../evidence/stalls.ts'

/** An event that a receiver accepted. */
export interface Arrival {
  readonly id: string
  readonly emittedAt: number
  readonly at: number
}

export type Ask =
  | {
      readonly kind: 'open'
      readonly port: number
      readonly isWeak: boolean
      readonly isDown: boolean
    }
  | { readonly kind: 'up' | 'down' | 'report'; readonly port: number }

export interface Tell {
  readonly kind: 'told'
  readonly arrivals: readonly Arrival[]
  readonly requests: readonly number[]
  readonly falls: number
  /** Stalls of the process that contains all receivers. */
  readonly standstills: readonly Span[]
}

const PROGRAM = new URL('./receiver.ts', import.meta.url)
/** 30 s for a response that takes milliseconds. */
const ANSWERED = { withinMs: 30_000, everyMs: 5 }

/** HTTP servers in a separate process. */
export class Receivers {
  readonly #child: Child<Tell> = startChild(PROGRAM)
  #last: Promise<unknown> = Promise.resolve()

  /** Opens a receiver; its URL is valid even before it is up. */
  async open({
    isWeak = false,
    isDown = false,
  }: {
    readonly isWeak?: boolean
    readonly isDown?: boolean
  } = {}): Promise<{
    readonly port: number
    readonly url: string
  }> {
    const port = await freePort()
    await this.ask({ kind: 'open', port, isWeak, isDown })
    return { port, url: `http://127.0.0.1:${port}/events` }
  }

  /** Sends one request at a time, because responses carry no id. */
  ask(question: Ask): Promise<Tell> {
    const answer = this.#last.then(async () => {
      const { messages } = this.#child
      const known = messages.length
      this.#child.send(question)
      await until('a receiver responds', () => messages.length > known, ANSWERED)
      return messages[known] as Tell
    })
    this.#last = answer
    return answer
  }

  end(): void {
    this.#child.signal('SIGKILL')
  }
}
