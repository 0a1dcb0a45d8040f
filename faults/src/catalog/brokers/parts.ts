import type { Duration } from '@redrive/core'
import type { DeadLetterSource, Sink, Transport } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Where } from '../options.ts'

/** One kind of broker, with the functions that a run needs. */
export interface Broker {
  /**
   * `takeOver`: time until other consumers take over from a dead one. Default: the transport's
   * default.
   */
  transport(where: Where, pool: Pool, takeOver?: Duration): Transport
  source(where: Where, pool: Pool): DeadLetterSource
  sink(where: Where, pool: Pool): Sink
  /** Creates the topology; called before any consumer starts. */
  declare(where: Where): Promise<void>
  /** Deletes everything of the run. */
  forget(where: Where): Promise<void>
}
