import { FAILURE_CLASSES, RedriveError } from '@redrive/core'
import type { FingerprintMatch } from './match.ts'

/** A rule that names the group of matching dead letters. */
export interface FingerprintRule {
  /** Name of the rule, for the dry run. */
  readonly name: string
  /** Name of the source. Default: all sources. */
  readonly source?: string
  /** At least one condition. */
  readonly match: FingerprintMatch
  /** Name of the group. Several rules can have the same group. */
  readonly group: string
}

/** 200 rules: each is compared with every dead letter of the ingest, in about a microsecond. */
const RULES_MAX = 200
/** 200 characters: a name that fits in a line, or a part of a message. */
export const RULE_TEXT_MAX = 200
/** 512 characters: the maximum length of a stored name. */
const VALUE_MAX = 512

const FIELDS: ReadonlySet<string> = new Set<keyof FingerprintMatch>([
  'class',
  'code',
  'type',
  'errorType',
  'handler',
  'text',
])

/** Rejects invalid rules with all problems together. */
export function checkRules(rules: readonly FingerprintRule[]): void {
  const problems = rules.flatMap((rule, at) =>
    problemsOf(rule).map((problem) => `fingerprints[${at}]: ${problem}`),
  )
  if (rules.length > RULES_MAX) {
    problems.push(`fingerprints: expected at most ${RULES_MAX} rules, got ${rules.length}`)
  }
  const names = rules.map(({ name }) => name)
  for (const name of new Set(names.filter((one, at) => names.indexOf(one) !== at))) {
    problems.push(`fingerprints: two rules have the name "${name}"`)
  }
  if (problems.length === 0) return
  throw new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })
}

function problemsOf({ name, source, match, group }: FingerprintRule): readonly string[] {
  const problems: string[] = []
  if (!isName(name)) problems.push(`name: expected 1 to ${RULE_TEXT_MAX} characters`)
  if (!isName(group)) problems.push(`group: expected 1 to ${RULE_TEXT_MAX} characters`)
  if (source !== undefined && !isText(source, VALUE_MAX)) {
    problems.push('source: expected the name of a source')
  }
  const conditions = Object.entries(match)
  if (conditions.length === 0) {
    problems.push(`match: expected at least one of ${[...FIELDS].join(', ')}`)
  }
  for (const [field, value] of conditions) {
    const isValid = FIELDS.has(field) && isText(value, field === 'text' ? RULE_TEXT_MAX : VALUE_MAX)
    if (!isValid) problems.push(`match.${field}: expected ${expectedOf(field)}`)
  }
  if (match.class !== undefined && !(FAILURE_CLASSES as readonly string[]).includes(match.class)) {
    problems.push(`match.class: expected one of ${FAILURE_CLASSES.join(', ')}`)
  }
  if (/^\**$/.test(match.text ?? 'text')) {
    problems.push(
      'match.text: expected a character other than *, because * alone matches everything',
    )
  }
  return problems
}

function expectedOf(field: string): string {
  if (!FIELDS.has(field)) return `no such condition. Use one of ${[...FIELDS].join(', ')}`
  return field === 'text'
    ? `1 to ${RULE_TEXT_MAX} characters; * matches any characters`
    : `1 to ${VALUE_MAX} characters`
}

const isText = (value: unknown, max: number) =>
  typeof value === 'string' &&
  value !== '' &&
  value.length <= max &&
  value.isWellFormed() &&
  !value.includes('\0')

const isName = (value: unknown) => isText(value, RULE_TEXT_MAX)
