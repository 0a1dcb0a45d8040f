import type { Answer, Input, Operation, StreamOperation } from '@redrive/api'
import type { Caller } from '../access/caller.ts'

/** How it was asked, beside what. */
export interface How {
  /** Names the mutation: asked again under the same name, it is the same one. Undefined: not a mutation. */
  readonly request: string | undefined
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

export type Handler<K extends Operation> = (
  caller: Caller,
  input: Input<K>,
  how: How,
) => Promise<K extends StreamOperation ? AsyncIterable<Answer<K>> : Answer<K>>

/** One for every operation of the API: one that is missing does not compile. */
export type Handlers<K extends Operation = Operation> = { readonly [P in K]: Handler<P> }
