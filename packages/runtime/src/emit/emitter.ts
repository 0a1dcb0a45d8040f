import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { ReplayAnswer, ReplayQuery } from '../ports.ts'
import type { EventInput, Schemas } from './event.ts'
import { FanOut } from './fan-out.ts'
import { type CloseOptions, type EmitterOptions, resolveEmitter } from './options.ts'
import type { EmitResult, EmitterStats } from './result.ts'

type DataOf<S extends Schemas, Type extends string> = Type extends keyof S
  ? StandardSchemaV1.InferInput<S[Type]>
  : unknown

export interface Emitter<S extends Schemas = Schemas> {
  /**
   * Sends the event to every sink. Resolves when each has it, or it is stored or dropped as the
   * options say; a failed sink fails no other. Rejects when the event is invalid, when the emitter is
   * closed, and when the event would be lost (`EVENT_LOST`). In a non-failing scope it resolves at
   * once and never rejects. Not awaited, a rejection harms nobody.
   */
  emit<Type extends string>(event: EventInput<Type, DataOf<S, Type>>): Promise<EmitResult>
  /** Sends one dead letter of the store again. False: it is not there, or someone else is sending it. */
  replay(id: string): Promise<boolean>
  /** Sends the oldest that fit again, as breaker and budget allow. */
  replayBatch(query: ReplayQuery): Promise<ReplayAnswer>
  stats(): EmitterStats
  /** Takes nothing more, delivers what it can, stores the rest, closes sinks and store. Safe to call twice. */
  close(options?: CloseOptions): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Sends events to sinks: each with its own queue, retries and breaker, and a store for what does not arrive. */
export function createEmitter<const S extends Schemas = Record<never, never>>(
  options: EmitterOptions<S>,
): Emitter<S> {
  const emitter = new FanOut(resolveEmitter(options))
  return {
    emit: (event) => emitter.emit(event),
    replay: (id) => emitter.replay(id),
    replayBatch: (query) => emitter.replayBatch(query),
    stats: () => emitter.stats(),
    close: (closing) => emitter.close(closing),
    [Symbol.asyncDispose]: () => emitter.close(),
  }
}
