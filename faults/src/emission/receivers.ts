import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Span } from '../standstill.ts'

/** An event that a receiver has taken. */
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
  readonly arrivals: readonly Arrival[]
  readonly requests: readonly number[]
  readonly falls: number
  /** Of the process that all receivers are in. */
  readonly standstills: readonly Span[]
}

const PROGRAM = fileURLToPath(new URL('./receiver.ts', import.meta.url))

/** HTTP servers in another process. */
export class Receivers {
  readonly #child: ChildProcess
  #last: Promise<unknown> = Promise.resolve()

  constructor() {
    this.#child = fork(PROGRAM, { execArgv: ['--conditions=@redrive/source'] })
  }

  /** Opens one; the URL is where it is, or will be when it is up. */
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

  /** One question after the other: answers carry no name. */
  ask(question: Ask): Promise<Tell> {
    const answer = this.#last.then(async () => {
      this.#child.send(question)
      const [told] = (await once(this.#child, 'message')) as [Tell]
      return told
    })
    this.#last = answer
    return answer
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
