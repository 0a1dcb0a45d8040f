import { FILLS, QUOTES, shell } from './quote.ts'

/** The brokers that are looked at. */
export type Broker = 'rabbitmq' | 'kafka' | 'postgres'

/** Worst first. What becomes of messages when nothing is changed. */
export const SEVERITIES: readonly Severity[] = ['loss', 'duplicates', 'delay', 'advice']
export type Severity = 'loss' | 'duplicates' | 'delay' | 'advice'

/** What a deployment survives; the table is `GRADES`. */
export type Grade = 'A' | 'B' | 'C'

/** Something in the settings that can lose, double or stall messages, with what to do about it. */
export interface Finding {
  /** Stable, such as `rabbitmq.dead-letter-strategy`. */
  readonly check: string
  readonly severity: Severity
  /** The queue, topic or setting. */
  readonly subject: string
  readonly found: string
  readonly why: string
  /** A command, or a setting and its value. */
  readonly fix: string
  /** The best grade that is possible with it. A: it costs none. */
  readonly caps: Grade
}

/**
 * One hit of a check. `fill` has what the braces of the check's `fix` stand for, beside `{subject}`: in quotes
 * of a shell, or of another kind, as in `{subject:literal}`.
 */
export interface Hit {
  readonly subject: string
  readonly found: string
  readonly fill?: Readonly<Record<string, string | number>>
  /** Where it depends on what was hit. */
  readonly severity?: Severity
  readonly caps?: Grade
}

/** A trap: what it looks for, and a pure function that finds it. */
export interface Check<Facts> {
  readonly id: string
  readonly severity: Severity
  readonly caps: Grade
  /** Half a sentence, for the table of all checks. */
  readonly looksFor: string
  readonly why: string
  readonly fix: string
  readonly hits: (facts: Facts) => readonly Hit[]
}

/** A fact that could not be read. What is not known counts as the worst that it may hide. */
export interface Unreadable {
  readonly what: string
  readonly why: string
  /** How to allow it. */
  readonly allow: string
  readonly hides: Severity
}

/** All that the checks find in the facts, worst first. */
export function findIn<Facts>(checks: readonly Check<Facts>[], facts: Facts): readonly Finding[] {
  return checks
    .flatMap((check) => check.hits(facts).map((hit) => asFinding(check, hit)))
    .sort(byWeight)
}

const byWeight = (one: Finding, other: Finding): number =>
  SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity) ||
  other.caps.localeCompare(one.caps)

function asFinding(
  { id, severity, caps, why, fix }: Check<never>,
  { subject, found, fill = {}, ...own }: Hit,
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

/** A check that found nothing because it looked at nothing must not look like a good grade. */
export const nothingCheck = <Facts>(
  broker: Broker,
  fix: string,
  isNothing: (facts: Facts) => boolean,
): Check<Facts> => ({
  id: `${broker}.nothing-looked-at`,
  severity: 'loss',
  caps: 'C',
  looksFor: 'nothing to look at',
  why: 'No setting of a place that holds messages was looked at, so nothing is known about it.',
  fix,
  hits: (facts) =>
    isNothing(facts) ? [{ subject: 'sources', found: 'nothing was looked at' }] : [],
})

/** The same check for every broker: a fact that could not be read. */
export const unreadableCheck = (
  broker: Broker,
): Check<{ readonly unreadable: readonly Unreadable[] }> => ({
  id: `${broker}.unreadable`,
  severity: 'loss',
  caps: 'C',
  looksFor: 'a fact that could not be read',
  why: 'What is not known counts as the worst that it may hide: the checks that need it did not run.',
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
