import type { Group, Output } from '@redrive/api'
import { useLiveQuery } from '../../data/live.ts'
import type { Overview, Source } from '../../data/queries.ts'
import { trendQuery } from '../../data/trends.ts'
import { cappedText, countText } from '../../words/numbers.ts'
import { durationText } from '../../words/times.ts'
import { barsOf, HOUR_MS, latestOf, peakOf, RANGES } from '../../words/trends.ts'

export interface KpisProps {
  readonly overview: Overview
  readonly groups: readonly Group[]
  readonly sources: Output<'listSources'>['sources']
  readonly now: number
}

/** Three numbers: how fast dead letters arrive, how old the oldest is, and how many groups are new. */
export function Kpis({ overview: { oldestAgeMs }, groups, sources, now }: KpisProps) {
  const points = useLiveQuery(trendQuery('2h'), 10_000).data ?? []
  const bars = barsOf(points, RANGES['2h'], now)
  const [latest, peak] = [latestOf(bars), peakOf(bars)]
  const fresh = groups.filter(({ firstSeenAt }) => now - firstSeenAt < 24 * HOUR_MS).length
  return (
    <dl className="kpis" aria-label="Now">
      <div>
        <dt>Arriving</dt>
        <dd className="kpi-value">
          {countText(latest)} <small>per min</small>
        </dd>
        <dd>{latest < peak ? `peak ${countText(peak)} in 2 h` : 'the most in 2 h'}</dd>
      </div>
      <div>
        <dt>Oldest</dt>
        <dd className="kpi-value">{oldestAgeMs === undefined ? '–' : durationText(oldestAgeMs)}</dd>
        <dd>{oldestSource(sources)}</dd>
      </div>
      <div>
        <dt>New groups</dt>
        <dd className="kpi-value">{cappedText(fresh, fresh === GROUPS_MAX)}</dd>
        <dd>in 24 h</dd>
      </div>
    </dl>
  )
}

/** The overview loads this many groups. */
const GROUPS_MAX = 50

function oldestSource(sources: readonly Source[]): string {
  const [oldest] = sources
    .filter(({ oldestAt }) => oldestAt !== undefined)
    .toSorted((one, other) => (one.oldestAt ?? 0) - (other.oldestAt ?? 0))
  return oldest?.source ?? ''
}
