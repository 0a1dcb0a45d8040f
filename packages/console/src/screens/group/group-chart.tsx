import type { Group } from '@redrive/api'
import { useNavigate } from '@tanstack/react-router'
import { BarChart } from '../../components/bar-chart.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Segments } from '../../components/tabs.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { trendQuery } from '../../data/trends.ts'
import { timeMode } from '../../preferences.ts'
import { useStore } from '../../store.ts'
import { countText } from '../../words/numbers.ts'
import { clockText, durationText } from '../../words/times.ts'
import { barsOf, RANGES, type RangeName } from '../../words/trends.ts'

const OPTIONS = [
  { name: '2h', label: '2 h' },
  { name: '24h', label: '24 h' },
  { name: '7d', label: '7 d' },
] as const

export interface GroupChartProps {
  readonly group: Group
  readonly range: RangeName
  readonly now: number
}

/** Failures over time with the first and the last one marked, and four numbers. */
export function GroupChart({ group, range, now }: GroupChartProps) {
  const navigate = useNavigate({ from: '/groups/$id' })
  const mode = useStore(timeMode) === 'utc' ? 'utc' : 'local'
  const points = useLiveQuery(trendQuery(range, group.id), 15_000).data ?? []
  const bars = barsOf(points, RANGES[range], now)
  const timeOf = (at: number) => clockText(at, now, mode)
  const start = bars[0]?.at ?? now
  const marks = [
    { at: group.firstSeenAt, text: `${timeOf(group.firstSeenAt)} first` },
    { at: group.lastSeenAt, text: `${timeOf(group.lastSeenAt)} last` },
  ].filter(({ at }, index) => at >= start && (index === 0 || now - at > (now - start) / 40))
  const title = range === '2h' ? 'Failures per minute' : 'Failures per hour'
  const total = bars.reduce((sum, { count }) => sum + count, 0)
  return (
    <Card
      title={title}
      note={`${countText(total)} in ${OPTIONS.find(({ name }) => name === range)?.label ?? ''}`}
      action={
        <Segments
          label="Range"
          options={OPTIONS}
          current={range}
          onChange={(name) =>
            void navigate({ search: (search) => ({ ...search, range: name }), replace: true })
          }
        />
      }
    >
      <CardBody>
        <BarChart label={title} name={group.class} bars={bars} timeOf={timeOf} marks={marks} />
      </CardBody>
      <dl className="group-stats">
        <Stat value={countText(group.openCount)} name="open" />
        <Stat value={countText(group.count)} name="total" />
        <Stat
          value={(group.attempts / Math.max(group.count, 1)).toFixed(1)}
          name="attempts per message"
        />
        <Stat value={durationText(now - group.firstSeenAt)} name="since the first failure" />
      </dl>
    </Card>
  )
}

const Stat = ({ value, name }: { readonly value: string; readonly name: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)
