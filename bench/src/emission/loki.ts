// The server that everyone sends to, as the benchmark sees it.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { patiently } from '../patience.ts'
import type { Ask, Tell } from './loki-messages.ts'

const PROGRAM = fileURLToPath(new URL('./loki-server.ts', import.meta.url))

export class LokiProcess {
  readonly url: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.url = `http://127.0.0.1:${port}`
  }

  static async start(): Promise<LokiProcess> {
    // Without the flags of the benchmark: its heap is pinned for measuring, the server's is not measured.
    const child = fork(PROGRAM, { execArgv: [] })
    const { port } = await heard(child, 'listening')
    return new LokiProcess(child, port)
  }

  /** Counts from zero. */
  async expect(count: number): Promise<void> {
    await this.#ask({ kind: 'expect', count }, 'expecting')
  }

  /** Resolves when all have come that are expected. Asked for before the first is sent. */
  async reached(): Promise<void> {
    await heard(this.#child, 'reached')
  }

  async count(): Promise<number> {
    const { count } = await this.#ask({ kind: 'count' }, 'count')
    return count
  }

  async #ask<Kind extends Tell['kind']>(ask: Ask, answer: Kind) {
    const told = heard(this.#child, answer)
    this.#child.send(ask)
    return told
  }

  close(): void {
    this.#child.disconnect()
  }
}

function heard<Kind extends Tell['kind']>(child: ChildProcess, kind: Kind) {
  type Told = Extract<Tell, { kind: Kind }>
  const { promise, resolve, reject } = Promise.withResolvers<Told>()
  const onMessage = (told: Tell) => {
    if (told.kind === kind) resolve(told as Told)
  }
  const onExit = () => reject(new Error('The server that takes the events is gone.'))
  child.on('message', onMessage)
  child.on('exit', onExit)
  return patiently(promise, () => `the server has not said: ${kind}`).finally(() => {
    child.off('message', onMessage)
    child.off('exit', onExit)
  })
}
