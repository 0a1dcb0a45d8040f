import type { FailureClass } from '@redrive/core'
import type { NewGroup } from '../ingest/new-group.ts'
import { groupId } from '../ingest/identity.ts'
import { ask, type Cursor, type Reader } from '../read/sql.ts'
import { namedGroup, ruleFor, rulesOf } from './named.ts'
import type { FingerprintRule } from './rules.ts'
import { OPEN_LETTERS } from './statements.ts'

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

/** The next open dead letters of a source. */
export interface Page {
  readonly letters: readonly LetterRow[]
  /** Undefined: there are no more. */
  readonly next: Cursor | undefined
}

export async function readPage(
  reader: Reader,
  source: string,
  after: Cursor | undefined,
): Promise<Page> {
  const values = [source, after?.at ?? null, after?.id ?? null, PAGE_SIZE]
  const letters = await ask<LetterRow>(reader, { text: OPEN_LETTERS, values })
  const last = letters.length < PAGE_SIZE ? undefined : letters.at(-1)
  return { letters, next: last === undefined ? undefined : { at: last.last_ms, id: last.id } }
}

/** Returns a function that finds the move of a dead letter; undefined: it stays in its group. */
export function createPlanner(
  source: string,
  rules: readonly FingerprintRule[],
): (letter: LetterRow) => PlannedMove | undefined {
  const own = rulesOf(rules, source)
  return (letter) => {
    const { error_type: errorType, own_handler: ownHandler } = letter
    const rule = ruleFor(own, { ...letter, errorType })
    const target =
      rule === undefined
        ? signatureGroup(source, letter)
        : namedGroup(source, rule.group, { ...letter, ownHandler })
    return target === undefined || target.id === letter.group_id
      ? undefined
      : { letter, target, rule }
  }
}

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
