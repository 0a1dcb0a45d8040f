// The client side of the server that all candidates send to.
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
    // Without the flags of the benchmark. They fix the heap size for measuring, and the server's
    // heap is not measured.
    const child = fork(PROGRAM, { execArgv: [] })
    const { port } = await nextMessage(child, 'listening')
    return new LokiProcess(child, port)
  }

  /** Restarts the count at zero. */
  async expect(count: number): Promise<void> {
    await this.#ask({ kind: 'expect', count }, 'expecting')
  }

  /** Resolves when all expected entries have arrived. Call it before the first is sent. */
  async reached(): Promise<void> {
    await nextMessage(this.#child, 'reached')
  }

  async count(): Promise<number> {
    const { count } = await this.#ask({ kind: 'count' }, 'count')
    return count
  }

  async #ask<Kind extends Tell['kind']>(ask: Ask, answer: Kind) {
    const message = nextMessage(this.#child, answer)
    this.#child.send(ask)
    return message
  }

  close(): void {
    this.#child.disconnect()
  }
}

function nextMessage<Kind extends Tell['kind']>(child: ChildProcess, kind: Kind) {
  type Message = Extract<Tell, { kind: Kind }>
  const { promise, resolve, reject } = Promise.withResolvers<Message>()
  const onMessage = (message: Tell) => {
    if (message.kind === kind) resolve(message as Message)
  }
  const onExit = () => reject(new Error('The server that receives the events has ended.'))
  child.on('message', onMessage)
  child.on('exit', onExit)
  return patiently(promise, () => `the server has not sent "${kind}"`).finally(() => {
    child.off('message', onMessage)
    child.off('exit', onExit)
  })
}
