import { reading, type Reader } from '../read/sql.ts'
import type { ItemCounts } from '../replay/run/states.ts'
import { REPLAYED } from './statements.ts'

/** Counts of the replay items of a source by state, over all its runs. */
export interface SourceReplayStats {
  readonly source: string
  readonly items: ItemCounts
}

export const readReplayed = (reader: Reader): Promise<readonly SourceReplayStats[]> =>
  reading(reader, (run) => run<SourceReplayStats>(REPLAYED))
