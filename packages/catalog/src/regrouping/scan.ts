import type { FailureClass } from '@redrive/core'
import type { RunSql } from '../database.ts'
import type { NewGroup } from '../ingest/new-group.ts'
import { groupId } from '../ingest/identity.ts'
import { ask, type Cursor, type Reader } from '../read/sql.ts'
import type { Traits } from './match.ts'
import { namedGroup, ruleFor, rulesOf } from './named.ts'
import type { FingerprintRule } from './rules.ts'
import { readSplits, type SourceSplits, splitGroup } from './splits.ts'
import { openLetters } from './statements.ts'

/** An open dead letter with the values that rules compare. */
export interface LetterRow {
  readonly id: string
  readonly group_id: string
  readonly class: FailureClass
  readonly code: string | null
  readonly type: string | null
  readonly message: string
  readonly error_type: string | null
  readonly signature: string | null
  readonly own_handler: string | null
  readonly handler: string | null
  readonly is_named: boolean
  /** Empty unless the scope reads them. */
  readonly headers: Readonly<Record<string, unknown>>
  /** The group that users see. */
  readonly root_id: string
  readonly last_ms: number
}

/** A dead letter that belongs to another group by the current rules. */
export interface PlannedMove {
  readonly letter: LetterRow
  readonly target: NewGroup
  /** Undefined: no rule matches any more, so it returns to the group of its signature. */
  readonly rule: FingerprintRule | undefined
}

/** 2,000 rows per page: some tens of ms. */
const PAGE_SIZE = 2_000

/** The open dead letters of a source, or of one group of it, and how to find their moves. */
export interface Scope {
  readonly source: string
  /** Id of the group. Undefined: the whole source. */
  readonly part?: string
  readonly withHeaders: boolean
  readonly plan: (letter: LetterRow) => PlannedMove | undefined
  /**
   * Returns the scope by the splits of now; undefined if they have not changed. Called in a transaction that prevents
   * further changes. Absent: the plan does not use splits.
   */
  readonly renew?: (run: RunSql) => Promise<Scope | undefined>
}

/** The next open dead letters of a scope. */
export interface Page {
  readonly letters: readonly LetterRow[]
  /** Undefined: there are no more. */
  readonly next: Cursor | undefined
}

export async function readPage(
  reader: Reader,
  { source, part, withHeaders }: Scope,
  after: Cursor | undefined,
): Promise<Page> {
  const column = part === undefined ? 'source_id = s.id' : 'group_id = $5::uuid'
  const position = [after?.at ?? null, after?.id ?? null]
  const letters = await ask<LetterRow>(reader, {
    text: openLetters(column, withHeaders),
    values: [source, ...position, PAGE_SIZE, ...(part === undefined ? [] : [part])],
  })
  const last = letters.length < PAGE_SIZE ? undefined : letters.at(-1)
  return { letters, next: last === undefined ? undefined : { at: last.last_ms, id: last.id } }
}

/** Returns the scope of a source by the current rules and splits. */
export function sourceScope(
  source: string,
  rules: readonly FingerprintRule[],
  splits: SourceSplits,
): Scope {
  const own = rulesOf(rules, source)
  const withHeaders = splits.splits.some(({ conditions }) => conditions.headers !== undefined)
  const plan = (letter: LetterRow) => {
    const traits = traitsOf(letter)
    const { own_handler: ownHandler } = letter
    const rule = ruleFor(own, traits)
    const base =
      rule === undefined
        ? signatureGroup(source, letter)
        : namedGroup(source, rule.group, { ...traits, ownHandler })
    if (base === undefined) return undefined
    const target = splitGroup(base, splits, { source, traits, ownHandler }) ?? base
    return target.id === letter.group_id ? undefined : { letter, target, rule }
  }
  const renew = async (run: RunSql) => {
    const current = await readSplits(run, source)
    return isSame(current, splits) ? undefined : sourceScope(source, rules, current)
  }
  return { source, withHeaders, plan, renew }
}

const isSame = (one: SourceSplits, other: SourceSplits) => textOf(one) === textOf(other)

const textOf = ({ splits, groupsOf }: SourceSplits) =>
  JSON.stringify([splits, [...groupsOf].map((one) => JSON.stringify(one)).toSorted()])

export const traitsOf = (letter: LetterRow): Traits => ({
  class: letter.class,
  code: letter.code,
  type: letter.type,
  errorType: letter.error_type,
  handler: letter.handler,
  message: letter.message,
  headers: () => letter.headers,
})

/** Returns the group by signature of a dead letter in a named group. Other dead letters stay where they are. */
function signatureGroup(source: string, letter: LetterRow): NewGroup | undefined {
  const { is_named, signature, class: kind, code, error_type: errorType, message } = letter
  if (!is_named || signature === null) return undefined
  return {
    id: groupId(source, signature),
    signature,
    algorithm: Number(/^(\d{1,4})-/.exec(signature)?.[1] ?? 0),
    class: kind,
    code,
    errorType,
    handler: letter.own_handler,
    frame: null,
    sample: message,
  }
}
