import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { ReplayQuery, ReplayResult } from '../ports/dead-letter-store.ts'
import type { EventInput, Schemas } from './event.ts'
import { FanOut } from './fan-out.ts'
import type { CloseOptions, EmitterOptions } from './options.ts'
import { addEmitter } from '../process-parts.ts'
import { resolveEmitter } from './read-options.ts'
import type { EmitResult, EmitterStats } from './result.ts'

/** The data of an event: the input of its schema, if it has one. */
export type EventData<S extends Schemas, Type extends string> = Type extends keyof S
  ? StandardSchemaV1.InferInput<S[Type]>
  : unknown

export interface Emitter<S extends Schemas = Schemas> {
  /**
   * Sends the event to every sink. Resolves when each sink has it, or it is stored or dropped as the
   * options require. A failed sink does not affect the others. Rejects when the event is invalid, when
   * the emitter is closed, or when the event would be lost (`EVENT_LOST`). In a non-failing scope it
   * resolves immediately, unless thousands of events wait for the store, and never rejects. A rejection without `await` does not end the process.
   */
  emit<Type extends string>(event: EventInput<Type, EventData<S, Type>>): Promise<EmitResult>
  /** Sends one dead letter of the store again. Returns false when it does not exist or another process is sending it. */
  replay(id: string): Promise<boolean>
  /** Sends the oldest matching dead letters again, as breaker and budget allow. */
  replayBatch(query: ReplayQuery): Promise<ReplayResult>
  /** Resolves when the store can be used; rejects with the reason when not. Call it at start. */
  ready(): Promise<void>
  stats(): EmitterStats
  /** Stops new events, delivers as many as possible, stores the rest, closes sinks and store. Safe to call twice. */
  close(options?: CloseOptions): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Creates an emitter that sends events to sinks. Each sink has its own queue, retries and breaker; a store keeps undelivered events. */
export function createEmitter<const S extends Schemas = Record<never, never>>(
  options: EmitterOptions<S>,
): Emitter<S> {
  const emitter = new FanOut(resolveEmitter(options))
  const remove = addEmitter(emitter)
  const close = (closing?: CloseOptions) => emitter.close(closing).finally(remove)
  return {
    emit: (event) => emitter.emit(event),
    replay: (id) => emitter.replay(id),
    replayBatch: (query) => emitter.replayBatch(query),
    ready: () => emitter.ready(),
    stats: () => emitter.stats(),
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}
