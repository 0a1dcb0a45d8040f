import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { DeadLetterSource } from '@redrive/runtime'
import type { Pool } from 'pg'
import {
  addComment,
  assign,
  changeGroup,
  type Comment,
  type GroupChange,
  type GroupChanged,
  type SeenGroup,
  mute,
  readComments,
  reopen,
  resolveGroup,
} from './act/group.ts'
import { discard, restore, type Selection, type Settled } from './act/settle.ts'
import { type Ingested, ingestAll } from './ingest/ingest.ts'
import { type IngestOptions, resolveIngest } from './ingest/options.ts'
import {
  type DeadLetterDetail,
  type DeadLetterPage,
  type DeadLetterPreview,
  readDeadLetter,
  readDeadLetterPreview,
  readDeadLetters,
} from './read/dead-letters.ts'
import {
  type FailureGroup,
  type GroupPage,
  type GroupQuery,
  readGroup,
  readGroups,
} from './read/groups.ts'
import type { DeadLetterQuery } from './read/query.ts'
import type { Reader } from './read/sql.ts'
import { readSourceNames, readSourcesOf, type Sourced } from './read/sources.ts'
import { readTrend, type TrendPoint, type TrendQuery } from './read/trend.ts'
import { type WhyGrouped, whyGrouped } from './read/why.ts'
import type { ApprovalRule } from './replay/lifecycle.ts'
import type { Origins } from './replay/parts.ts'
import { Replays } from './replay/replays.ts'
import { type Maintained, maintainAll } from './retention.ts'
import type { PayloadKeys } from './seal.ts'
import { type CatalogCounts, readCounts } from './watch/counts.ts'
import { readReplayed, type SourceReplays } from './watch/replayed.ts'

export interface CatalogOptions {
  /**
   * Of the primary, never of a replica, and not in pipeline mode. An ingest borrows up to two connections at
   * once, every question one.
   */
  readonly pool: Pool
  /** Encrypts payloads from now on; without it they are stored in the clear. Default: none. */
  readonly keys?: PayloadKeys
  /** How long a question may take before it is ended. '100ms' to '1m', default '2s'. */
  readonly searchTimeout?: Duration
  /**
   * Where dead letters may go back to, by the name of their source. Where one came from is said by its own
   * headers, which whoever sent it could write: one that says anything else is not replayed. Default: to
   * where each of them says.
   */
  readonly origins?: Origins
  /** Who may approve a replay. Default `'another_person'`: not the one who planned it. */
  readonly approval?: ApprovalRule
}

/** 2 s: a page takes milliseconds, so what takes longer is a search that should be narrowed. */
const SEARCH_MS = 2_000
const LEAST_SEARCH_MS = 100
const MOST_SEARCH_MS = 60_000

/** The record of dead letters and of what people did with them. */
export class Catalog {
  readonly #pool: Pool
  readonly #keys: PayloadKeys | undefined
  readonly #reader: Reader
  /** Sending dead letters back, and what became of it. */
  readonly replays: Replays

  constructor(options: CatalogOptions) {
    const {
      pool,
      keys,
      searchTimeout = SEARCH_MS,
      approval = 'another_person',
      origins = {},
    } = options
    this.#pool = pool
    this.#keys = keys
    this.replays = new Replays({ pool, keys, origins }, approval)
    this.#reader = { pool, timeoutMs: checkedTimeout(pool, searchTimeout) }
  }

  /**
   * Takes over what waits in the source, batch by batch, until nothing is left. A batch is released from
   * the broker when it is committed here, and given back when it is not. Any number may run at once, on
   * one source or many; one that is stopped in any way goes on where it was when it is called again.
   */
  async ingest(source: DeadLetterSource, options: IngestOptions = {}): Promise<Ingested> {
    const resolved = resolveIngest(options, source.source, this.#keys)
    return ingestAll(this.#pool, source, resolved, options.signal)
  }

  /** A page of dead letters, newest last failure first. */
  async deadLetters(query: DeadLetterQuery): Promise<DeadLetterPage> {
    return readDeadLetters(this.#reader, query)
  }

  /** One dead letter with its payload; undefined when there is none. */
  async deadLetter(id: string): Promise<DeadLetterDetail | undefined> {
    return readDeadLetter(this.#reader, this.#keys, id)
  }

  /** One dead letter with its preview alone: no body is read and no key is needed. */
  async deadLetterPreview(id: string): Promise<DeadLetterPreview | undefined> {
    return readDeadLetterPreview(this.#reader, id)
  }

  /** A page of groups. */
  async groups(query: GroupQuery = {}): Promise<GroupPage> {
    return readGroups(this.#reader, query)
  }

  async group(id: string): Promise<FailureGroup | undefined> {
    return readGroup(this.#reader, id)
  }

  /** Names of all sources there are, in their order. */
  async sourceNames(): Promise<readonly string[]> {
    return readSourceNames(this.#reader)
  }

  /** The source of each of these; those that are not there are not in the answer. */
  async sourcesOf(kind: Sourced, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return readSourcesOf(this.#reader, kind, ids)
  }

  /** What the dead letters of a group have in common; undefined when there is no such group. */
  async whyGrouped(id: string): Promise<WhyGrouped | undefined> {
    return whyGrouped(this.#reader, id)
  }

  /** How many dead letters there were in each minute or hour. */
  async trend(query: TrendQuery): Promise<readonly TrendPoint[]> {
    return readTrend(this.#reader, query)
  }

  /** Nobody has to deal with these any more; they can be restored until retention takes them. */
  async discard(selection: Selection, { by }: { readonly by: string }): Promise<Settled> {
    return discard(this.#pool, selection, by)
  }

  /** Undoes a discard. */
  async restore(selection: Selection, { by }: { readonly by: string }): Promise<Settled> {
    return restore(this.#pool, selection, by)
  }

  /** Its cause is gone: a later failure of the same kind makes it regressed. False: no such group. */
  async resolveGroup(id: string): Promise<boolean> {
    return resolveGroup(this.#pool, id)
  }

  /** Raises no alerts, for ever or until that moment (epoch ms). False: no such group. */
  async muteGroup(id: string, { until }: { readonly until?: number } = {}): Promise<boolean> {
    return mute(this.#pool, id, until)
  }

  /** Neither muted nor resolved. False: no such group. */
  async reopenGroup(id: string): Promise<boolean> {
    return reopen(this.#pool, id)
  }

  /** Whose it is; undefined: nobody's. False: no such group. */
  async assignGroup(id: string, owner: string | undefined): Promise<boolean> {
    return assign(this.#pool, id, owner)
  }

  /** All of it at once, and only while the group is as it was seen. */
  async changeGroup(id: string, change: GroupChange, seen: SeenGroup): Promise<GroupChanged> {
    return changeGroup(this.#pool, id, change, seen)
  }

  /** About a dead letter or a group. */
  async comment(
    subject: string,
    comment: { readonly author: string; readonly text: string },
  ): Promise<void> {
    return addComment(this.#pool, subject, comment)
  }

  /** Oldest first, the last 500. */
  async comments(subject: string): Promise<readonly Comment[]> {
    return readComments(this.#pool, subject)
  }

  /** For `metricsOf` and `alertsOf`. */
  async counts(): Promise<CatalogCounts> {
    return readCounts(this.#reader)
  }

  /** What became of the items of all runs, by source. */
  async replayed(): Promise<readonly SourceReplays[]> {
    return readReplayed(this.#reader)
  }

  /** Makes the days to come and drops those that no source has to keep. Call it every hour. */
  async maintain(): Promise<Maintained> {
    return maintainAll(this.#pool)
  }
}

function checkedTimeout(pool: Pool, searchTimeout: Duration): number {
  const problems: string[] = []
  const timeoutMs = parseDuration(searchTimeout) ?? Number.NaN
  if (!(timeoutMs >= LEAST_SEARCH_MS && timeoutMs <= MOST_SEARCH_MS)) {
    problems.push(`searchTimeout: expected '100ms' to '1m', got ${searchTimeout}`)
  }
  if (typeof (pool as Pool | undefined)?.connect !== 'function') {
    problems.push("pool: expected a Pool of 'pg'")
  }
  if (problems.length === 0) return Math.round(timeoutMs)
  const message = `catalog() cannot be set up:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}
