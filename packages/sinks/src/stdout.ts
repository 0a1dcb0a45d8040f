import type { Writable } from 'node:stream'
import type { CheckedSink, OutboundEvent } from '@redrive/runtime'
import { closed, unreachable } from './errors.ts'
import { lineOf } from './events.ts'
import { Problems, type SinkOptions } from './options.ts'

export interface StdoutOptions extends SinkOptions {
  /** The stream to write to. Default: standard output. It is never ended. */
  readonly stream?: Writable
  /** Maximum events in one write (1–10,000, default 1,000). */
  readonly batch?: number
}

/** 1,000: a few hundred KB, after which the reader must have kept up. */
const BATCH = 1_000

/** Writes one line of JSON per event, and waits for the reader. */
export class StdoutSink implements CheckedSink {
  readonly name: string
  readonly batch: number
  readonly #stream: Writable
  #isClosed = false
  /** Ignores errors: without a listener, a reader that closes would end the process. */
  readonly #onError = (): void => undefined

  constructor({ name = 'stdout', stream = process.stdout, batch = BATCH }: StdoutOptions = {}) {
    const problems = new Problems()
    this.batch = problems.batch(batch)
    problems.refuse('stdout()')
    this.name = name
    this.#stream = stream
    stream.on('error', this.#onError)
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted()
    this.#check()
    if (events.length > 0) await this.#write(events.map(lineOf).join(''), signal)
  }

  /** Writes and waits until the stream has passed the data on, which is later than `drain`: nothing queues here. */
  #write(lines: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#stream.write(lines, (error) => {
      signal.removeEventListener('abort', onAbort)
      if (error === null || error === undefined) resolve()
      else reject(unreachable('The process that reads the output has closed it.', error))
    })
    return promise
  }

  #check(): void {
    if (this.#isClosed) throw closed(this.name)
    if (!this.#stream.writable)
      throw unreachable('The process that reads the output has closed it.')
  }

  async healthCheck(): Promise<void> {
    this.#check()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stream.off('error', this.#onError)
  }
}
