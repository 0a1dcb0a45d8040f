import type { FailureClass } from '@redrive/core'
import { reading, type Reader } from '../read/sql.ts'
import { CLOCK, GROUPS, SOURCES } from './statements.ts'

/** A snapshot of all sources, read from stored counts. */
export interface CatalogCounts {
  /** Time of the snapshot by the clock of the database, epoch ms. */
  readonly at: number
  readonly sources: readonly SourceCounts[]
  /** The largest group of each source, and all groups that are new or regressed within a day. */
  readonly groups: readonly NotableGroup[]
}

export interface SourceCounts {
  readonly source: string
  /** Number of open dead letters. */
  readonly open: number
  /** Number of dead letters that are being replayed. */
  readonly replaying: number
  /** Number of dead letters whose replay has an unknown outcome. */
  readonly undecided: number
  /** Number of all dead letters ever ingested. */
  readonly count: number
  readonly attempts: number
  readonly openByClass: Readonly<Partial<Record<FailureClass, number>>>
  /** Last failure of the oldest open dead letter. */
  readonly oldestAt: number | undefined
  /**
   * Number of open and unknown dead letters that retention deletes within 7 days, or within half of a shorter
   * retention. Maintenance counts them every hour.
   */
  readonly expiring: number
  /** When the first of them expires. */
  readonly nextExpiryAt: number | undefined
  /** When the last dead letter was ingested. */
  readonly lastIngestedAt: number | undefined
  /** Number of messages that are set aside and neither replayed nor discarded. */
  readonly setAside: number
  /**
   * Number of confirmations and returned messages with the replay id of a replay that they do not belong to: from
   * another source, with another body, or without its signature. They change no other dead letter.
   */
  readonly mismatches: number
  /** When the last of them arrived. */
  readonly mismatchedAt: number | undefined
}

export interface NotableGroup {
  readonly id: string
  readonly source: string
  readonly title: string
  readonly open: number
  readonly isMuted: boolean
  /** When the catalog created the group. */
  readonly createdAt: number
  readonly regressedAt: number | undefined
}

export async function readCounts(reader: Reader): Promise<CatalogCounts> {
  return reading(reader, async (run) => {
    const [clock] = await run<{ at: number }>(CLOCK)
    const sources = await run<SourceRow>(SOURCES)
    const groups = await run<GroupRow>(GROUPS)
    return {
      at: clock?.at ?? 0,
      sources: sources.map((row) => ({
        ...row,
        oldestAt: row.oldestAt ?? undefined,
        nextExpiryAt: row.nextExpiryAt ?? undefined,
        lastIngestedAt: row.lastIngestedAt ?? undefined,
        mismatchedAt: row.mismatchedAt ?? undefined,
      })),
      groups: groups.map((row) => ({ ...row, regressedAt: row.regressedAt ?? undefined })),
    }
  })
}

type Times = 'oldestAt' | 'nextExpiryAt' | 'lastIngestedAt' | 'mismatchedAt'
type SourceRow = Omit<SourceCounts, Times> & Readonly<Record<Times, number | null>>
type GroupRow = Omit<NotableGroup, 'regressedAt'> & { readonly regressedAt: number | null }
