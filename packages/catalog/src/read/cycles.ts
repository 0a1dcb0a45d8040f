import type { FailureRecord } from '@redrive/core'
import { type StoredPreview, storedPreview } from '../ingest/preview.ts'
import { isId } from './check.ts'
import { EARLIER_CYCLES } from './cycle-statements.ts'
import { type HistoryEntry, recordOf } from './dead-letters.ts'
import { ask, type Reader } from './sql.ts'

/** An earlier cycle of a dead letter: it was replayed and failed again. */
export interface EarlierCycle extends StoredPreview {
  readonly cycle: number
  /** The group of the failure. The next cycle may have failed in another way. */
  readonly group: string
  /** The replay that ended this cycle and started the next. */
  readonly replayId: string
  readonly firstFailedAt: number
  readonly lastFailedAt: number
  readonly attempts: number
  readonly reason: string
  /** The last failures of the cycle, oldest first. */
  readonly history: readonly FailureRecord[]
  /** Whether the replay had an edited body, so that the body of this cycle is kept, and its preview. */
  readonly isEdited: boolean
}

/** Returns the earlier cycles of a dead letter, oldest first. */
export async function readCycles(reader: Reader, id: string): Promise<readonly EarlierCycle[]> {
  if (!isId(id)) return []
  const rows = await ask<CycleRow>(reader, { text: EARLIER_CYCLES, values: [id] })
  return rows.map(({ preview, history, ...row }) => ({
    ...row,
    history: history.map(recordOf),
    ...storedPreview(preview),
  }))
}

type CycleRow = Omit<EarlierCycle, 'history' | 'hiddenBy'> & {
  readonly history: readonly HistoryEntry[]
}
