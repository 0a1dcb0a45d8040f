import { headerText } from '@redrive/core'
import { type ScriptRunner, scriptRunner } from '@redrive/redis-internal'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { type Field, toBuffer } from './delivery.ts'
import {
  type RedisStreamSinkOptions,
  type ResolvedSinkOptions,
  resolveSinkOptions,
} from './options.ts'
import { ADD, CHECK } from './source-scripts.ts'

/** 100: as in the sinks of other brokers. */
const BATCH = 100

/** A sink that adds events to a stream. An event that is sent twice is stored twice, with the same key. */
export class RedisStreamSink implements Sink {
  readonly name: string
  readonly batch: number = BATCH
  readonly #options: ResolvedSinkOptions
  readonly #runScript: ScriptRunner

  /** @internal */
  constructor(options: ResolvedSinkOptions) {
    this.#options = options
    this.name = options.name
    this.#runScript = scriptRunner({ ...options, replies: 'text' })
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    const { stream, body } = this.#options
    // One script per stream: streams may be in different slots of a cluster.
    for (const [name, some] of Map.groupBy(events, stream)) {
      signal.throwIfAborted()
      const args = some.flatMap((event) => {
        const fields = fieldsOf(event, body)
        return [String(fields.length), ...fields]
      })
      await this.#runScript(ADD, Array(some.length).fill(name) as string[], args)
    }
  }

  /** Runs the command that `send` uses, on a key that does not exist: it adds nothing. */
  async healthCheck(): Promise<void> {
    await this.#runScript(CHECK, ['redrive:health'], [])
  }

  /** Does nothing, because the caller owns the client. */
  async close(): Promise<void> {}
}

function fieldsOf(event: OutboundEvent, body: string): readonly Field[] {
  const { id, key, type, bytes, contentType, headers } = event
  const named = { ...headers, 'content-type': contentType, type, 'redrive-id': headerText(id) }
  const keyed = key === id ? named : { ...named, 'redrive-key': headerText(key) }
  return [body, toBuffer(bytes), ...Object.entries(keyed).flat()]
}

/** Creates a sink that adds events to a stream, for `relay` and the emitter of the runtime. */
export function redisStreamSink(options: RedisStreamSinkOptions): RedisStreamSink {
  return new RedisStreamSink(resolveSinkOptions(options))
}
