import type { FailureClass } from '@redrive/core'
import type { CatalogCounts, NotableGroup, SourceCounts } from './counts.ts'

/** A snapshot for dashboards. */
export interface Metrics {
  /** Number of open dead letters. */
  readonly depth: number
  /** Number of dead letters that are being replayed. */
  readonly replaying: number
  /** Number of dead letters whose replay has an unknown outcome. */
  readonly undecided: number
  readonly depthBySource: Readonly<Record<string, number>>
  readonly depthByClass: Readonly<Partial<Record<FailureClass, number>>>
  /** Time since the last failure of the oldest open dead letter. */
  readonly oldestAgeMs: number | undefined
  /** Average number of attempts of all dead letters ever ingested. */
  readonly averageAttempts: number | undefined
  /** Number of open and unknown dead letters that retention deletes soon. See `SourceCounts`. */
  readonly expiring: number
  /** Number of messages that are set aside and neither replayed nor discarded. */
  readonly setAside: number
  /** Names of sources whose depth has reached the limit. */
  readonly overThreshold: readonly string[]
}

/** Thresholds of alerts. */
export interface AlertLimits {
  /** Number of open dead letters of a source (default 100). */
  readonly depth: number
  /** Age of the oldest open dead letter in ms (default 30 min). */
  readonly ageMs: number
  /** Share of one group in its source. A larger share raises an alert (default 0.5). */
  readonly dominanceShare: number
  /** Number of open dead letters that the same group must also exceed (default 10). */
  readonly dominanceCount: number
  /**
   * How long a group counts as new, and a regression or a wrong replay id as recent, in ms (default 10 min, at most
   * one day).
   */
  readonly freshMs: number
  /** Other limits of single sources, by name. Default: none. */
  readonly sources?: Readonly<Record<string, Partial<Omit<AlertLimits, 'sources'>>>>
}

/** Returns the limits of a source. */
export function limitsOf(
  { sources = {}, ...common }: AlertLimits,
  source: string,
): Omit<AlertLimits, 'sources'> {
  return { ...common, ...(Object.hasOwn(sources, source) ? sources[source] : {}) }
}

export const ALERT_LIMITS: AlertLimits = Object.freeze({
  depth: 100,
  ageMs: 1_800_000,
  dominanceShare: 0.5,
  dominanceCount: 10,
  freshMs: 600_000,
})

/** A condition that is true now. The receiver has to remember which alerts it has delivered. */
export type Alert =
  | { readonly kind: 'depth'; readonly source: string; readonly depth: number }
  /** Messages that could not be catalogued as dead letters, and are neither replayed nor discarded. */
  | { readonly kind: 'set_aside'; readonly source: string; readonly count: number }
  /** Confirmations or returned messages with the replay id of another message. They may be forged. */
  | { readonly kind: 'replay_mismatch'; readonly source: string; readonly count: number }
  | { readonly kind: 'age'; readonly source: string; readonly ageMs: number }
  | {
      readonly kind: 'expiring'
      readonly source: string
      /** Number of open and unknown dead letters that retention deletes soon. */
      readonly expiring: number
      /** When the first of them expires, epoch ms. */
      readonly nextExpiryAt: number
    }
  | {
      readonly kind: 'dominance'
      readonly source: string
      readonly group: string
      readonly share: number
    }
  | { readonly kind: 'new_signature'; readonly source: string; readonly group: string }
  | { readonly kind: 'regressed'; readonly source: string; readonly group: string }

export function metricsOf(
  { at, sources }: CatalogCounts,
  limits: AlertLimits = ALERT_LIMITS,
): Metrics {
  const sum = (of: (source: SourceCounts) => number) =>
    sources.reduce((total, source) => total + of(source), 0)
  const count = sum((source) => source.count)
  const oldest = sources.map(({ oldestAt }) => oldestAt).filter((time) => time !== undefined)
  return {
    depth: sum(({ open }) => open),
    replaying: sum(({ replaying }) => replaying),
    undecided: sum(({ undecided }) => undecided),
    depthBySource: Object.fromEntries(sources.map(({ source, open }) => [source, open])),
    depthByClass: byClass(sources),
    oldestAgeMs: oldest.length === 0 ? undefined : Math.max(0, at - Math.min(...oldest)),
    averageAttempts: count === 0 ? undefined : sum(({ attempts }) => attempts) / count,
    expiring: sum(({ expiring }) => expiring),
    setAside: sum((source) => source.setAside),
    overThreshold: sources
      .filter(({ source, open }) => open >= limitsOf(limits, source).depth)
      .map(({ source }) => source),
  }
}

function byClass(sources: readonly SourceCounts[]): Partial<Record<FailureClass, number>> {
  const total: Partial<Record<FailureClass, number>> = {}
  for (const { openByClass } of sources) {
    for (const [kind, open] of Object.entries(openByClass) as [FailureClass, number][]) {
      total[kind] = (total[kind] ?? 0) + open
    }
  }
  return total
}

/** Returns all active alerts. Muted groups raise no alerts. */
export function alertsOf(
  counts: CatalogCounts,
  limits: AlertLimits = ALERT_LIMITS,
): readonly Alert[] {
  const groups = counts.groups.filter(({ isMuted }) => !isMuted)
  return [
    ...counts.sources.flatMap((source) =>
      ofSource(source, counts.at, limitsOf(limits, source.source)),
    ),
    ...groups.flatMap((group) => ofGroup(group, counts, limitsOf(limits, group.source))),
  ]
}

function ofSource(counts: SourceCounts, at: number, limits: AlertLimits): readonly Alert[] {
  const { source, open, oldestAt, expiring, nextExpiryAt, setAside } = counts
  const { mismatches, mismatchedAt } = counts
  const ageMs = oldestAt === undefined ? 0 : at - oldestAt
  const alerts: Alert[] = []
  if (open >= limits.depth) alerts.push({ kind: 'depth', source, depth: open })
  if (oldestAt !== undefined && ageMs >= limits.ageMs) alerts.push({ kind: 'age', source, ageMs })
  if (expiring > 0 && nextExpiryAt !== undefined)
    alerts.push({ kind: 'expiring', source, expiring, nextExpiryAt })
  if (setAside > 0) alerts.push({ kind: 'set_aside', source, count: setAside })
  if (mismatchedAt !== undefined && at - mismatchedAt < limits.freshMs)
    alerts.push({ kind: 'replay_mismatch', source, count: mismatches })
  return alerts
}

function ofGroup(
  { id: group, source, open, createdAt, regressedAt }: NotableGroup,
  { at, sources }: CatalogCounts,
  limits: AlertLimits,
): readonly Alert[] {
  const alerts: Alert[] = []
  const depth = sources.find((one) => one.source === source)?.open ?? 0
  const share = depth === 0 ? 0 : open / depth
  if (share > limits.dominanceShare && open > limits.dominanceCount) {
    alerts.push({ kind: 'dominance', source, group, share })
  }
  const isFresh = (time: number | undefined) => time !== undefined && at - time < limits.freshMs
  if (isFresh(createdAt)) alerts.push({ kind: 'new_signature', source, group })
  if (isFresh(regressedAt)) alerts.push({ kind: 'regressed', source, group })
  return alerts
}
