import type { DeadLetterSource } from '@redrive/runtime'
import type { Pool } from 'pg'
import {
  addComment,
  assign,
  changeGroup,
  type Comment,
  type GroupChange,
  type GroupChangeResult,
  type GroupVersion,
  mute,
  readComments,
  reopen,
  resolveGroup,
} from './triage/group.ts'
import { discard, restore, type Selection, type DiscardResult } from './triage/discard.ts'
import {
  applySelection,
  findSelection,
  type FrozenSelection,
  select,
  type SelectionAction,
  type SelectionConfirmation,
  type SelectionRequest,
  type SelectionResult,
} from './triage/selection.ts'
import { type IngestResult, ingestAll } from './ingest/ingest.ts'
import { type IngestOptions, resolveIngest } from './ingest/options.ts'
import {
  type DeadLetterDetail,
  type DeadLetterPage,
  type DeadLetterPreview,
  readDeadLetter,
  readDeadLetterPreview,
  readDeadLetters,
} from './read/dead-letters.ts'
import type { FailureGroup } from './read/failure-group.ts'
import { type GroupPage, type GroupQuery, readGroup, readGroups } from './read/groups.ts'
import type { DeadLetterQuery } from './read/query.ts'
import type { Reader } from './read/sql.ts'
import { readSourceNames, readSourcesOf, type ResourceKind } from './read/sources.ts'
import { type EarlierCycle, readCycles } from './read/cycles.ts'
import { openBeforeEdit, openPayload, type OpenPayload } from './read/open-payload.ts'
import { type ExpiredPage, type ExpiredQuery, readExpired } from './read/expired.ts'
import { readTrend, type TrendPoint, type TrendQuery } from './read/trend.ts'
import { type GroupExplanation, explainGroup } from './read/explain-group.ts'
import { Replays } from './replay/replays.ts'
import { type MaintenanceResult, maintainAll } from './retention.ts'
import {
  readChecks,
  type SourceCheck,
  storeCheck,
  type StoredSourceCheck,
} from './state/source-checks.ts'
import {
  putBackAll,
  type PutBackOptions,
  type PutBackResult,
  startIngest,
} from './put-back/put-back.ts'
import type { PayloadKeys } from './encryption.ts'
import { type CatalogOptions, checkedOptions } from './options.ts'
import { createSetAside, type SetAside } from './set-aside/set-aside.ts'
import { createRegrouping, type Regrouping } from './regrouping/regrouping.ts'
import { checkRules } from './regrouping/rules.ts'
import { type CatalogCounts, readCounts } from './metrics/counts.ts'
import { readReplayed, type SourceReplayStats } from './metrics/replay-stats.ts'

/** The record of all dead letters and of every change that users made to them. */
export class Catalog {
  readonly #pool: Pool
  readonly #keys: PayloadKeys | undefined
  readonly #reader: Reader
  readonly #runRetentionMs: number
  /** Plans and controls replays, and reads their outcomes. */
  readonly replays: Replays
  /** Lists, replays and discards messages that could not be catalogued as dead letters. */
  readonly setAside: SetAside
  /** Corrects groups by hand. */
  readonly regrouping: Regrouping

  constructor(options: CatalogOptions) {
    const {
      pool,
      keys,
      approval = 'another_person',
      origins = {},
      proofs = {},
      fingerprints = [],
    } = options
    checkRules(fingerprints)
    this.#pool = pool
    this.#keys = keys
    const { timeoutMs, runRetentionMs, maxPauseMs, schemaTimeoutMs } = checkedOptions(options)
    const deps = { pool, keys, origins, proofs, schemaTimeoutMs }
    this.replays = new Replays(deps, approval, maxPauseMs)
    this.#reader = { pool, timeoutMs }
    this.#runRetentionMs = runRetentionMs
    this.setAside = createSetAside({ pool, keys, reader: this.#reader, approval })
    this.regrouping = createRegrouping({ pool, reader: this.#reader }, fingerprints)
  }

  /**
   * Moves all dead letters of the source into the catalog, batch by batch. A batch is released from the broker
   * after its commit here; if the commit fails, the batch is returned to the broker. Several ingests can run at
   * the same time, on one source or many. After an interruption, the next call continues with the rest.
   */
  async ingest(source: DeadLetterSource, options: IngestOptions = {}): Promise<IngestResult> {
    const resolved = resolveIngest(options, source.source, this.#keys, this.regrouping.rules)
    return ingestAll(this.#pool, source, resolved, options.signal)
  }

  /**
   * Moves the open dead letters and set-aside messages of a source back into its dead-letter queue, so that the
   * catalog can be removed. Stops the ingest of the source until `startIngest`. After an interruption, the next call continues.
   */
  async putBack(source: DeadLetterSource, options: PutBackOptions = {}): Promise<PutBackResult> {
    const deps = { pool: this.#pool, reader: this.#reader, keys: this.#keys }
    return putBackAll(deps, source, options)
  }

  /** Starts the ingest of a source again after `putBack`. */
  async startIngest(source: string): Promise<void> {
    return startIngest(this.#pool, source)
  }

  /** Returns a page of dead letters, newest last failure first. */
  async deadLetters(query: DeadLetterQuery): Promise<DeadLetterPage> {
    return readDeadLetters(this.#reader, query)
  }

  /** Returns one dead letter with its payload, or undefined if it does not exist. */
  async deadLetter(id: string): Promise<DeadLetterDetail | undefined> {
    return readDeadLetter(this.#reader, this.#keys, id)
  }

  /** Returns one dead letter with its preview only. Reads no body and needs no key. */
  async deadLetterPreview(id: string): Promise<DeadLetterPreview | undefined> {
    return readDeadLetterPreview(this.#reader, id)
  }

  /** Returns the earlier cycles of a dead letter that was replayed and failed again, oldest first. */
  async cycles(id: string): Promise<readonly EarlierCycle[]> {
    return readCycles(this.#reader, id)
  }

  /** Opens the payload of a dead letter, to read its body in pieces. Undefined: it does not exist. */
  async payload(id: string): Promise<OpenPayload | undefined> {
    return openPayload(this.#reader, this.#keys, id)
  }

  /** Opens the payload of an earlier cycle before a replay edited it. Undefined: it was not edited. */
  async beforeEdit(id: string, cycle: number): Promise<OpenPayload | undefined> {
    return openBeforeEdit(this.#reader, this.#keys, id, cycle)
  }

  /** Returns a page of groups. */
  async groups(query: GroupQuery = {}): Promise<GroupPage> {
    return readGroups(this.#reader, query)
  }

  async group(id: string): Promise<FailureGroup | undefined> {
    return readGroup(this.#reader, id)
  }

  /** Returns the names of all sources in alphabetical order. */
  async sourceNames(): Promise<readonly string[]> {
    return readSourceNames(this.#reader)
  }

  /** Returns the source name of each id. Ids that do not exist are left out. */
  async sourcesOf(
    kind: ResourceKind,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, string>> {
    return readSourcesOf(this.#reader, kind, ids)
  }

  /** Explains what the dead letters of a group share. Returns undefined if the group does not exist. */
  async whyGrouped(id: string): Promise<GroupExplanation | undefined> {
    return explainGroup(this.#reader, id)
  }

  /** Counts dead letters per minute or hour. */
  async trend(query: TrendQuery): Promise<readonly TrendPoint[]> {
    return readTrend(this.#reader, query)
  }

  /** Returns how many dead letters retention has deleted, by source, day and status; newest day first. */
  async expired(query: ExpiredQuery = {}): Promise<ExpiredPage> {
    return readExpired(this.#reader, query)
  }

  /** Discards dead letters: they no longer count as open. They can be restored until retention deletes them. */
  async discard(selection: Selection, { by }: { readonly by: string }): Promise<DiscardResult> {
    return discard(this.#pool, selection, by)
  }

  /** Undoes a discard. */
  async restore(selection: Selection, { by }: { readonly by: string }): Promise<DiscardResult> {
    return restore(this.#pool, selection, by)
  }

  /**
   * Stores the dead letters that match a query now, to discard or restore exactly these. Returns the list with its count
   * and hash. Changes nothing.
   */
  async select(request: SelectionRequest): Promise<FrozenSelection> {
    return select(this.#pool, request)
  }

  /** Returns a selection, or undefined if it does not exist. */
  async selection(id: string): Promise<FrozenSelection | undefined> {
    return findSelection(this.#pool, id)
  }

  /** Discards or restores the dead letters of a selection. Dead letters that have changed since are skipped. */
  async applySelection(
    action: SelectionAction,
    id: string,
    confirmation: SelectionConfirmation,
  ): Promise<SelectionResult> {
    return applySelection(this.#pool, action, id, confirmation)
  }

  /** Marks a group as resolved. A later failure of the same kind marks it as regressed. False: no such group, or it is merged. */
  async resolveGroup(id: string): Promise<boolean> {
    return resolveGroup(this.#pool, id)
  }

  /** Mutes the alerts of a group, forever or until a timestamp (epoch ms). False: no such group, or it is merged. */
  async muteGroup(id: string, { until }: { readonly until?: number } = {}): Promise<boolean> {
    return mute(this.#pool, id, until)
  }

  /** Sets a muted or resolved group to open. False: no such group, or it is merged. */
  async reopenGroup(id: string): Promise<boolean> {
    return reopen(this.#pool, id)
  }

  /** Sets the owner of a group; undefined removes the owner. False: no such group, or it is merged. */
  async assignGroup(id: string, owner: string | undefined): Promise<boolean> {
    return assign(this.#pool, id, owner)
  }

  /** Applies all changes in one statement, but only if the group still equals `seen`. */
  async changeGroup(
    id: string,
    change: GroupChange,
    seen: GroupVersion,
  ): Promise<GroupChangeResult> {
    return changeGroup(this.#pool, id, change, seen)
  }

  /** Adds a comment to a dead letter or a group. */
  async comment(
    subject: string,
    comment: { readonly author: string; readonly text: string },
  ): Promise<void> {
    return addComment(this.#pool, subject, comment)
  }

  /** Returns the newest 500 comments, oldest first. */
  async comments(subject: string): Promise<readonly Comment[]> {
    return readComments(this.#pool, subject)
  }

  /** Stores what a process found when it checked a source. False: no ingest has added the source yet. */
  async storeSourceCheck(check: SourceCheck): Promise<boolean> {
    return storeCheck(this.#pool, check)
  }

  /** Returns the last check of each source by each process, if it is at most one minute old. */
  async sourceChecks(): Promise<readonly StoredSourceCheck[]> {
    return readChecks(this.#reader)
  }

  /** Returns the counts that `metricsOf` and `alertsOf` need. */
  async counts(): Promise<CatalogCounts> {
    return readCounts(this.#reader)
  }

  /** Counts the replay items of all runs by state, for each source. */
  async replayStats(): Promise<readonly SourceReplayStats[]> {
    return readReplayed(this.#reader)
  }

  /** Creates the partitions of the coming days, and deletes what is expired. Call it every hour. */
  async maintain(): Promise<MaintenanceResult> {
    return maintainAll(this.#pool, { runRetentionMs: this.#runRetentionMs })
  }
}
