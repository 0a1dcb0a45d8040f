import { ask, type Cursor, reading } from '../read/sql.ts'
import { type ApplyResult, moveInSlices } from './apply.ts'
import type { RegroupingDeps } from './merge.ts'
import type { FingerprintRule } from './rules.ts'
import { type LetterRow, type PlannedMove, readPage, type Scope, sourceScope } from './scan.ts'
import { readSplits } from './splits.ts'
import { TITLES } from './statements.ts'

/** The dead letters that a rule would move. */
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

/** 5 s: about 200,000 dead letters. */
const PREVIEW_MS = 5_000
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
    const scope = await scopeOf({ reader }, source, rules)
    let cursor: Cursor | undefined
    do {
      if (performance.now() > endsAt) {
        isComplete = false
        break
      }
      const page = await readPage(reader, scope, cursor)
      examined += page.letters.length
      for (const letter of page.letters) add(moves, scope.plan(letter))
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

/** Moves open dead letters to the groups of the rules. */
export async function applyFingerprints(
  deps: RegroupingDeps,
  rules: readonly FingerprintRule[],
  { sources, cursor }: ApplyRequest,
  budgetMs?: number,
): Promise<ApplyResult> {
  const scopes: Scope[] = []
  for (const source of sources) scopes.push(await scopeOf(deps, source, rules))
  return moveInSlices(deps, scopes, cursor, budgetMs)
}

const scopeOf = async (
  { reader }: Pick<RegroupingDeps, 'reader'>,
  source: string,
  rules: readonly FingerprintRule[],
): Promise<Scope> =>
  sourceScope(source, rules, await reading(reader, (run) => readSplits(run, source)))
