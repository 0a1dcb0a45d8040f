import type { Duration } from '@redrive/core'
import type { DeadLetterSource, Sink, Transport } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Where } from '../options.ts'

/** One kind of broker, in the parts that a run needs. */
export interface Broker {
  /** `takeOver`: until others take over from a consumer that died. Default: the transport's own. */
  transport(where: Where, pool: Pool, takeOver?: Duration): Transport
  source(where: Where, pool: Pool): DeadLetterSource
  sink(where: Where, pool: Pool): Sink
  /** Before anybody consumes. */
  declare(where: Where): Promise<void>
  /** Nothing of the run is needed any more. */
  forget(where: Where): Promise<void>
}
