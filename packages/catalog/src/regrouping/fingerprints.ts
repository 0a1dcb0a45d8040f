import { RedriveError } from '@redrive/core'
import { explaining, inTransaction } from '../database.ts'
import { addGroups } from '../ingest/groups.ts'
import { ask, type Cursor } from '../read/sql.ts'
import type { RegroupingDeps } from './merge.ts'
import type { FingerprintRule } from './rules.ts'
import { createPlanner, type LetterRow, type PlannedMove, readPage } from './scan.ts'
import { MOVE, SHARE_SOURCE, SOURCE_ID, TITLES } from './statements.ts'

/** What a rule would move. */
export interface RulePreview {
  /** Name of the rule. Undefined: no rule matches any more, so they return to the groups of their signatures. */
  readonly rule: string | undefined
  /** Name of the group. */
  readonly group: string | undefined
  /** Number of open dead letters that would move. */
  readonly count: number
  /** The groups that they would leave, at most 20, largest count first. */
  readonly from: readonly {
    readonly group: string
    readonly title: string
    readonly count: number
  }[]
  /** At most 3 of them. */
  readonly examples: readonly { readonly id: string; readonly message: string }[]
}

export interface FingerprintPreview {
  /** One for each rule, in their order, and one for dead letters that no rule matches any more. */
  readonly rules: readonly RulePreview[]
  /** Number of open dead letters that were compared, newest first. */
  readonly examined: number
  /** False: the time ended first. The counts are then lower limits. */
  readonly isComplete: boolean
}

export interface ApplyRequest {
  /** Names of the sources. */
  readonly sources: readonly string[]
  /** `nextCursor` of the previous call. Default: from the start. */
  readonly cursor?: string
}

export interface ApplyResult {
  readonly moved: number
  readonly examined: number
  /** Continue with it. Undefined: all open dead letters were compared. */
  readonly nextCursor: string | undefined
}

/** 5 s: about 200,000 dead letters. */
const PREVIEW_MS = 5_000
/** 10 s per call: a client shows the progress, and no connection waits longer. */
const APPLY_MS = 10_000
/** 500 rows per transaction, as an ingest: other writers wait milliseconds. */
const MOVE_BATCH = 500
const FROM_MAX = 20
const EXAMPLES_MAX = 3

/** Counts the open dead letters that the rules would move. Changes nothing. */
export async function previewFingerprints(
  { reader }: RegroupingDeps,
  rules: readonly FingerprintRule[],
  sources: readonly string[],
  budgetMs: number = PREVIEW_MS,
): Promise<FingerprintPreview> {
  const endsAt = performance.now() + budgetMs
  const moves = new Map<string | undefined, RuleMoves>(
    rules.map((rule) => [rule.name, { rule, count: 0, from: new Map(), examples: [] }]),
  )
  let examined = 0
  let isComplete = true
  for (const source of sources) {
    const plan = createPlanner(source, rules)
    let cursor: Cursor | undefined
    do {
      if (performance.now() > endsAt) {
        isComplete = false
        break
      }
      const page = await readPage(reader, source, cursor)
      examined += page.letters.length
      for (const letter of page.letters) add(moves, plan(letter))
      cursor = page.next
    } while (cursor !== undefined)
  }
  const roots = [...moves.values()].flatMap(({ from }) => [...from.keys()])
  const titles = await ask<{ id: string; title: string }>(reader, { text: TITLES, values: [roots] })
  const titleOf = new Map(titles.map(({ id, title }) => [id, title]))
  return {
    rules: [...moves.values()].map((one) => previewOf(one, titleOf)),
    examined,
    isComplete,
  }
}

interface RuleMoves {
  readonly rule: FingerprintRule | undefined
  count: number
  /** Number by the group that users see. */
  readonly from: Map<string, number>
  readonly examples: LetterRow[]
}

function add(moves: Map<string | undefined, RuleMoves>, move: PlannedMove | undefined): void {
  if (move === undefined) return
  const { letter, rule } = move
  const known = moves.get(rule?.name)
  const one: RuleMoves = known ?? { rule, count: 0, from: new Map(), examples: [] }
  if (known === undefined) moves.set(rule?.name, one)
  one.count += 1
  one.from.set(letter.root_id, (one.from.get(letter.root_id) ?? 0) + 1)
  if (one.examples.length < EXAMPLES_MAX) one.examples.push(letter)
}

function previewOf(
  { rule, count, from, examples }: RuleMoves,
  titleOf: ReadonlyMap<string, string>,
): RulePreview {
  const largest = [...from].sort(([, a], [, b]) => b - a).slice(0, FROM_MAX)
  return {
    rule: rule?.name,
    group: rule?.group,
    count,
    from: largest.map(([group, number]) => ({
      group,
      title: titleOf.get(group) ?? '',
      count: number,
    })),
    examples: examples.map(({ id, message }) => ({ id, message })),
  }
}

/**
 * Moves open dead letters to the groups of the rules, in small transactions. It ends after some seconds and returns where
 * to continue. A repeated call moves only what is not in its group yet.
 */
export async function applyFingerprints(
  deps: RegroupingDeps,
  rules: readonly FingerprintRule[],
  { sources, cursor }: ApplyRequest,
  budgetMs: number = APPLY_MS,
): Promise<ApplyResult> {
  const endsAt = performance.now() + budgetMs
  const start = cursor === undefined ? undefined : readPosition(cursor)
  let [moved, examined] = [0, 0]
  for (const source of [...sources].sort()) {
    if (start !== undefined && source < start.source) continue
    const plan = createPlanner(source, rules)
    let at = start?.source === source ? start.at : undefined
    do {
      const page = await readPage(deps.reader, source, at)
      examined += page.letters.length
      moved += await moveAll(
        deps,
        source,
        page.letters.flatMap((letter) => plan(letter) ?? []),
      )
      at = page.next
      if (at !== undefined && performance.now() > endsAt) {
        return { moved, examined, nextCursor: positionText({ source, at }) }
      }
    } while (at !== undefined)
  }
  return { moved, examined, nextCursor: undefined }
}

async function moveAll(
  { pool }: RegroupingDeps,
  source: string,
  moves: readonly PlannedMove[],
): Promise<number> {
  let moved = 0
  for (let from = 0; from < moves.length; from += MOVE_BATCH) {
    const batch = moves.slice(from, from + MOVE_BATCH)
    moved += await explaining(() =>
      inTransaction(pool, async (run) => {
        const [known] = await run<{ id: number }>(SOURCE_ID, [source])
        const sourceId = known?.id ?? 0
        await run(SHARE_SOURCE, [sourceId])
        const targets = new Map(batch.map((move) => [move.target.id, move]))
        await addGroups(
          run,
          sourceId,
          [...targets.values()].map(({ target, letter }) => ({
            group: target,
            at: letter.last_ms,
          })),
        )
        const [row] = await run<{ moved: number }>(MOVE, [
          batch.map(({ letter }) => letter.id),
          batch.map(({ letter }) => letter.group_id),
          batch.map(({ target }) => target.id),
        ])
        return row?.moved ?? 0
      }),
    )
  }
  return moved
}

/** Where a call ended: the source and the last dead letter. */
interface Position {
  readonly source: string
  readonly at: Cursor
}

const positionText = ({ source, at }: Position) =>
  Buffer.from(JSON.stringify([source, at.at, at.id])).toString('base64url')

function readPosition(text: string): Position {
  try {
    const [source, at, id] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (typeof source === 'string' && typeof at === 'number' && typeof id === 'string') {
      return { source, at: { at, id } }
    }
  } catch {
    // Not a cursor. The error below says so.
  }
  const problem = 'cursor: expected "nextCursor" of the previous call'
  throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
}
