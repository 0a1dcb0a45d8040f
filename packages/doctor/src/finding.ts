import { FILLS, QUOTES, shell } from './quote.ts'

/** The brokers that can be checked. */
export type Broker = 'rabbitmq' | 'kafka' | 'nats' | 'postgres' | 'redis' | 'sqs'

/** The effects on messages if nothing is changed, worst first. */
export const SEVERITIES: readonly Severity[] = ['loss', 'duplicates', 'delay', 'advice']
export type Severity = 'loss' | 'duplicates' | 'delay' | 'advice'

/** The faults that a deployment survives; `GRADES` describes them. */
export type Grade = 'A' | 'B' | 'C'

/** A setting that can lose, duplicate or delay messages, with a fix. */
export interface Finding {
  /** Stable id of the check, such as `rabbitmq.dead-letter-strategy`. */
  readonly check: string
  readonly severity: Severity
  /** The queue, topic or setting. */
  readonly subject: string
  readonly found: string
  readonly why: string
  /** A command, or a setting and its value. */
  readonly fix: string
  /** The best grade that is possible with this finding; `A` means no limit. */
  readonly caps: Grade
}

/**
 * One hit of a check. `fill` contains the values for the placeholders in `fix`, in addition to `{subject}`. They
 * are quoted for a shell, or for another syntax, as in `{subject:literal}`.
 */
export interface CheckHit {
  readonly subject: string
  readonly found: string
  readonly fill?: Readonly<Record<string, string | number>>
  /** Severity of this hit, if it differs from the check. */
  readonly severity?: Severity
  readonly caps?: Grade
}

/** The problem of one subject, with the values for its fix; undefined when there is none. */
export type CheckResult =
  | string
  | undefined
  | { readonly found: string; readonly fill: CheckHit['fill'] & object }

/** A check: its description, and a pure function that returns the hits. */
export interface Check<Facts> {
  readonly id: string
  readonly severity: Severity
  readonly caps: Grade
  /** Short description for the table of all checks. */
  readonly looksFor: string
  readonly why: string
  readonly fix: string
  readonly hits: (facts: Facts) => readonly CheckHit[]
}

/** A fact that could not be read. It counts as the worst finding that it may hide. */
export interface Unreadable {
  readonly what: string
  readonly why: string
  /** How to make it readable. */
  readonly allow: string
  readonly hides: Severity
}

/** Returns the findings of the checks, worst first. */
export function findIn<Facts>(checks: readonly Check<Facts>[], facts: Facts): readonly Finding[] {
  return worstFirst(
    checks.flatMap((check) => check.hits(facts).map((hit) => asFinding(check, hit))),
  )
}

export const worstFirst = (findings: readonly Finding[]): readonly Finding[] =>
  findings.toSorted(byWeight)

const byWeight = (one: Finding, other: Finding): number =>
  SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity) ||
  other.caps.localeCompare(one.caps)

function asFinding(
  { id, severity, caps, why, fix }: Check<never>,
  { subject, found, fill = {}, ...own }: CheckHit,
): Finding {
  const filled: Readonly<Record<string, string | number>> = { subject, ...fill }
  return {
    check: id,
    severity: own.severity ?? severity,
    subject,
    found,
    why,
    fix: fix.replace(FILLS, (whole, name: string, kind: string | undefined) =>
      filled[name] === undefined ? whole : (QUOTES[kind ?? ''] ?? shell)(String(filled[name])),
    ),
    caps: own.caps ?? caps,
  }
}

/** Creates a check for empty facts, because a check without anything to check must not give a good grade. */
export const nothingCheck = <Facts>(
  broker: Broker,
  fix: string,
  isNothing: (facts: Facts) => boolean,
): Check<Facts> => ({
  id: `${broker}.nothing-looked-at`,
  severity: 'loss',
  caps: 'C',
  looksFor: 'no queues or topics to check',
  why: 'No queue, topic or table with messages was checked, so their settings are unknown.',
  fix,
  hits: (facts) => (isNothing(facts) ? [{ subject: 'sources', found: 'nothing was checked' }] : []),
})

/** Creates the check for facts that could not be read; it is the same for every broker. */
export const unreadableCheck = (
  broker: Broker,
): Check<{ readonly unreadable: readonly Unreadable[] }> => ({
  id: `${broker}.unreadable`,
  severity: 'loss',
  caps: 'C',
  looksFor: 'a fact that could not be read',
  why: 'The checks that need this fact did not run. It counts as the worst finding that it may hide.',
  fix: '{allow:text}',
  hits: ({ unreadable }) =>
    unreadable.map(({ what, why, allow, hides }) => ({
      subject: what,
      found: `not readable: ${why}`,
      fill: { allow },
      severity: hides,
      caps: hides === 'loss' ? 'C' : 'A',
    })),
})
