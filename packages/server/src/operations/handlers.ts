import type { Output, Input, Operation, StreamOperation } from '@redrive/api'
import type { Caller } from '../access/caller.ts'
import type { PiecewiseOutput } from './piecewise.ts'

/** Context of a request, in addition to its input. */
export interface How {
  /** Name of the mutation; a repeated request has the same name. Undefined if it is not a mutation. */
  readonly request: string | undefined
  /** Aborted when the client disconnects or the stream must end. */
  readonly signal: AbortSignal
}

export type Handler<K extends Operation> = (
  caller: Caller,
  input: Input<K>,
  how: How,
) => Promise<
  K extends StreamOperation
    ? AsyncIterable<Output<K>>
    : K extends PiecewiseOperation
      ? PiecewiseOutput<Output<K>>
      : Output<K>
>

/** Operations with a body of any size in their output. */
export type PiecewiseOperation = 'getPayload' | 'getSetAsidePayload'

/** Handlers by operation. The compiler reports a missing one. */
export type Handlers<K extends Operation = Operation> = { readonly [P in K]: Handler<P> }
