import { RedriveError } from '@redrive/core'
import { type AutoReplay, allowAuto, dueGroups, type DueGroup, isStillDue } from './auto.ts'
import { plan } from './plan.ts'
import { acknowledgeRestore, frozenBecause } from './epoch.ts'
import {
  type Approval,
  type ApprovalRule,
  approve,
  approveWithoutPerson,
  cancel,
  conflict,
  pause,
  resume,
} from './lifecycle.ts'
import type { ReplayChange, ReplayRequest } from './options.ts'
import type { ReplayParts } from './parts.ts'
import { Replayer, type ReplaySource, troubleOf } from './replayer.ts'
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
} from './runs.ts'
import { keepSchema, type SchemaOf } from './schema.ts'
import { type Decided, decide } from './settle.ts'
import { inTurn } from '../together.ts'

export interface ReplayerOptions {
  readonly sources: readonly ReplaySource[]
  /**
   * A file of this machine that remembers how far the catalog was: with it, a copy of the database's files
   * that was put back is noticed after a restart as well. Default: none.
   */
  readonly witness?: string
}

/** Who does it. */
export interface By {
  readonly by: string
}

/** Replays: planned, approved, published at a rate, and proven. */
export class Replays {
  readonly #parts: ReplayParts
  readonly #rule: ApprovalRule

  constructor(parts: ReplayParts, rule: ApprovalRule) {
    this.#parts = parts
    this.#rule = rule
  }

  /**
   * Freezes a selection, passes it through the gates and answers the preview: how many would be replayed
   * and how many not, by reason. Nothing is held and nothing goes out until it is approved.
   */
  async plan(request: ReplayRequest): Promise<ReplayRun> {
    return plan(this.#parts, request)
  }

  /** Lets it go out. The hash says what was agreed to; dead letters that changed since are skipped. */
  async approve(id: string, approval: Approval): Promise<ReplayRun> {
    await approve(this.#parts.pool, id, approval, this.#rule)
    return this.#must(id)
  }

  /** Nothing more goes out until it is resumed; what is out settles. */
  async pause(id: string, { by }: By): Promise<ReplayRun> {
    await pause(this.#parts.pool, id, `paused by ${by}`)
    return this.#must(id)
  }

  async resume(id: string, { by }: By): Promise<ReplayRun> {
    await resume(this.#parts.pool, id, by)
    return this.#must(id)
  }

  /** What is not out never goes out, and is open again; what is out settles. */
  async cancel(id: string, { by }: By): Promise<ReplayRun> {
    await cancel(this.#parts.pool, id, by)
    return this.#must(id)
  }

  async run(id: string): Promise<ReplayRun | undefined> {
    return readRun(this.#parts.pool, id)
  }

  /** Newest first. */
  async runs(query: RunQuery = {}): Promise<RunPage> {
    return readRuns(this.#parts.pool, query)
  }

  /** What became of each dead letter of a run, or of one dead letter in all runs. */
  async items(query: ItemQuery): Promise<readonly ReplayItem[]> {
    return readItems(this.#parts.pool, query)
  }

  /** What a run changes on the way out; undefined when nothing. */
  async change(id: string): Promise<ReplayChange | undefined> {
    const { pool, keys } = this.#parts
    return readRunChange(pool, keys, id)
  }

  /** A person has found out about unknown outcomes: they took effect, or they may be replayed again. */
  async decide(
    ids: readonly string[],
    decision: { readonly as: 'resolved' | 'open'; readonly by: string },
  ): Promise<Decided> {
    return decide(this.#parts.pool, ids, decision)
  }

  /** What the consumers of a source expect of a body; a replay that does not match is not planned. */
  async keepSchema(schema: SchemaOf): Promise<void> {
    return keepSchema(this.#parts.pool, schema)
  }

  /** Why nothing is replayed now; undefined when nothing stands in the way. */
  async frozenBecause(): Promise<string | undefined> {
    return frozenBecause(this.#parts.pool)
  }

  /** Someone looked at what a restore means, and lets replays go on. */
  async acknowledgeRestore({ by }: By): Promise<void> {
    if (by === '') throw conflict('by: expected who acknowledges it')
    await acknowledgeRestore(this.#parts.pool, by)
  }

  /**
   * Lets transient failures of a source go out again without a person, once they are quiet and the consumers
   * are well; `undefined` turns it off, as it is by default. Gates, ramp and stops are those of any run.
   */
  async allowAuto(source: string, auto: AutoReplay | undefined): Promise<void> {
    return allowAuto(this.#parts.pool, source, auto)
  }

  /** Plans and approves what may go out without a person. Called every now and then, by anybody. */
  async autoReplay(sources: readonly ReplaySource[]): Promise<void> {
    const byName = new Map(sources.map((one) => [one.name ?? one.source.source, one]))
    const due = await dueGroups(this.#parts.pool, [...byName.keys()])
    // One after the other: a plan is a long transaction.
    await inTurn(due, (one) => this.#autoReplay(one, byName.get(one.source)))
  }

  async #autoReplay(due: DueGroup, source: ReplaySource | undefined): Promise<void> {
    if (source === undefined || (await troubleOf(source)) !== undefined) return
    const { id, hash, state } = await this.plan({
      selection: { group: due.id },
      by: 'redrive',
      request: `auto ${due.id} ${due.hour}`,
      note: 'Transient, quiet, and allowed without a person.',
      ratePerSecond: due.rate,
    })
    if (state !== 'planned') return
    await approveWithoutPerson(this.#parts.pool, id, { hash, by: due.by }, this.#rule, (run) =>
      isStillDue(run, due.id),
    )
  }

  /** Does the work: any number of them, in any number of processes. */
  replayer({ sources, witness }: ReplayerOptions): Replayer {
    return new Replayer(this.#parts, sources, witness)
  }

  async #must(id: string): Promise<ReplayRun> {
    const found = await this.run(id)
    if (found === undefined) throw new RedriveError('CONFLICT', 'There is no such run.')
    return found
  }
}
