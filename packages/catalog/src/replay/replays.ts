import {
  type AutoReplay,
  type AutoReplayRun,
  type AutoReplayState,
  dueGroups,
  type DueGroup,
  enableAutoReplay,
  isStillDue,
} from './auto.ts'
import { plan } from './plan/plan.ts'
import { acknowledgeRestore, freezeReason } from './run/restore-detection.ts'
import {
  type Approval,
  type ApprovalRule,
  approve,
  approveWithoutPerson,
  cancel,
  conflict,
  noSuchRun,
  pause,
  resume,
} from './run/lifecycle.ts'
import type { ReplayChange, ReplayRequest } from './run/options.ts'
import type { ReplayDeps } from './run/context.ts'
import { Replayer, type ReplaySource, troubleOf } from './publish/replayer.ts'
import {
  type ItemQuery,
  readItems,
  readRun,
  readRunChange,
  readRuns,
  type ReplayItem,
  type ReplayRun,
  type RunPage,
  type RunQuery,
} from './run/read-runs.ts'
import { setSchema, type SchemaOf } from './plan/schema.ts'
import { type OutcomeResult, setOutcome } from './outcome/confirm.ts'
import { runInSequence } from '../run-all.ts'

export interface ReplayerOptions {
  readonly sources: readonly ReplaySource[]
  /**
   * Path of a local file that stores the last liveness counter of the catalog. With it, a restored copy of the
   * database files is also detected after a restart of this process. Default: none.
   */
  readonly restoreMarkerFile?: string
}

/** The user who calls the operation. */
export interface ActorOption {
  readonly by: string
}

/** Plans, approves and controls replay runs, and reads their outcomes. */
export class Replays {
  readonly #deps: ReplayDeps
  readonly #rule: ApprovalRule
  readonly #maxPauseMs: number

  /** @internal */
  constructor(deps: ReplayDeps, rule: ApprovalRule, maxPauseMs: number) {
    this.#deps = deps
    this.#rule = rule
    this.#maxPauseMs = maxPauseMs
  }

  /** Longest pause after which a run continues without another approval. */
  get approvalMaxPauseMs(): number {
    return this.#maxPauseMs
  }

  /**
   * Plans a run: freezes a selection, applies the gates and returns a preview with counts by reason. A plan locks
   * no dead letters and publishes nothing until it is approved.
   */
  async plan(request: ReplayRequest): Promise<ReplayRun> {
    return plan(this.#deps, request)
  }

  /**
   * Approves and starts a run, or approves a paused run again whose approval has ended, and resumes it. The hash identifies
   * the plan. Dead letters that have changed since are skipped.
   */
  async approve(id: string, approval: Approval): Promise<ReplayRun> {
    const rules = { rule: this.#rule, maxPauseMs: this.#maxPauseMs }
    await approve(this.#deps.pool, id, approval, rules)
    return this.#requireRun(id)
  }

  /**
   * Stops publishing until the run is resumed. Items that are published already still get their outcome. `because`: the
   * shown reason. Default: the user.
   */
  async pause(
    id: string,
    { by, because = `paused by ${by}` }: ActorOption & { readonly because?: string },
  ): Promise<ReplayRun> {
    await pause(this.#deps.pool, id, because)
    return this.#requireRun(id)
  }

  /** Resumes a paused run. After a pause of more than `approvalMaxPause`, it must be approved again. */
  async resume(id: string, { by }: ActorOption): Promise<ReplayRun> {
    await resume(this.#deps.pool, id, { by, maxPauseMs: this.#maxPauseMs })
    return this.#requireRun(id)
  }

  /** Cancels a run. Unpublished items reopen; published items still get their outcome. */
  async cancel(id: string, { by }: ActorOption): Promise<ReplayRun> {
    await cancel(this.#deps.pool, id, by)
    return this.#requireRun(id)
  }

  async run(id: string): Promise<ReplayRun | undefined> {
    return readRun(this.#deps.pool, id)
  }

  /** Returns a page of runs, newest first. */
  async runs(query: RunQuery = {}): Promise<RunPage> {
    return readRuns(this.#deps.pool, query)
  }

  /** Returns the items of a run, or the items of one dead letter in all runs, with their outcomes. */
  async items(query: ItemQuery): Promise<readonly ReplayItem[]> {
    return readItems(this.#deps.pool, query)
  }

  /** Returns the change that a run makes to its messages, or undefined if it makes none. */
  async change(id: string): Promise<ReplayChange | undefined> {
    const { pool, keys } = this.#deps
    return readRunChange(pool, keys, id)
  }

  /** Sets the outcome of unconfirmed replays. `resolved`: they took effect. `open`: they can be replayed again. */
  async setOutcome(
    ids: readonly string[],
    decision: { readonly as: 'resolved' | 'open'; readonly by: string },
  ): Promise<OutcomeResult> {
    return setOutcome(this.#deps.pool, ids, decision)
  }

  /** Sets the JSON Schema of a source. A plan skips dead letters whose body does not match. */
  async setSchema(schema: SchemaOf): Promise<void> {
    return setSchema(this.#deps.pool, schema)
  }

  /** Returns why replays are frozen, or undefined if they are not. */
  async freezeReason(): Promise<string | undefined> {
    return freezeReason(this.#deps.pool)
  }

  /** Records that a user has checked the effects of a restore, and allows replays again. */
  async acknowledgeRestore({ by }: ActorOption): Promise<void> {
    if (by === '') throw conflict('by: expected the name of the user who acknowledges the restore')
    await acknowledgeRestore(this.#deps.pool, by)
  }

  /**
   * Enables automatic replays for transient failures of a source. They start when no new failures arrive and the
   * consumers are healthy. The first user requests them; another user enables them with the same options. `undefined`
   * disables them, which is the default. Gates, canary and pauses are the same as for any run.
   */
  async enableAutoReplay(source: string, auto: AutoReplay | undefined): Promise<AutoReplayState> {
    return enableAutoReplay(this.#deps.pool, source, auto, this.#rule)
  }

  /**
   * Plans and approves automatic replays. Call it regularly, from any process. `onStart` is called before a run starts;
   * if it rejects, the run does not start.
   */
  async autoReplay(
    sources: readonly ReplaySource[],
    onStart: (run: AutoReplayRun) => Promise<void> = async () => undefined,
  ): Promise<void> {
    const byName = new Map(sources.map((one) => [one.name ?? one.source.source, one]))
    const due = await dueGroups(this.#deps.pool, [...byName.keys()])
    // One after the other, because a plan is a long transaction.
    await runInSequence(due, (one) => this.#autoReplay(one, byName.get(one.source), onStart))
  }

  async #autoReplay(
    due: DueGroup,
    source: ReplaySource | undefined,
    onStart: (run: AutoReplayRun) => Promise<void>,
  ): Promise<void> {
    if (source === undefined || (await troubleOf(source)) !== undefined) return
    const { id, hash, state } = await this.plan({
      // A group can contain merged groups of another class.
      selection: { query: { groups: [due.id], class: 'transient' } },
      by: 'redrive',
      request: `auto ${due.id} ${due.hour}`,
      note: 'Automatic replay: the failures are transient and no new ones arrive.',
      ratePerSecond: due.rate,
    })
    if (state !== 'planned') return
    const { requested_by, by: approvedBy } = due
    const requestedBy = requested_by ?? undefined
    await onStart({ run: id, source: due.source, group: due.id, requestedBy, approvedBy })
    await approveWithoutPerson(this.#deps.pool, id, { hash, by: due.by }, this.#rule, (run) =>
      isStillDue(run, due.id),
    )
  }

  /** Creates a replayer, which publishes approved runs. Several can work at the same time, in any process. */
  replayer({ sources, restoreMarkerFile }: ReplayerOptions): Replayer {
    return new Replayer(this.#deps, sources, restoreMarkerFile)
  }

  async #requireRun(id: string): Promise<ReplayRun> {
    const found = await this.run(id)
    if (found === undefined) throw noSuchRun(id)
    return found
  }
}
