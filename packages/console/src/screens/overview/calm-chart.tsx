import { BarChart } from '../../components/bar-chart.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { trendQuery } from '../../data/trends.ts'
import { countText } from '../../words/numbers.ts'
import { clockText } from '../../words/times.ts'
import { barsOf, RANGES } from '../../words/trends.ts'

/** The last seven days. Only shown when nothing needs a decision. */
export function CalmChart({ now }: { readonly now: number }) {
  const points = useLiveQuery(trendQuery('7d'), 60_000).data ?? []
  const bars = barsOf(points, RANGES['7d'], now)
  const total = bars.reduce((sum, { count }) => sum + count, 0)
  if (total === 0) return null
  return (
    <Card title="Dead letters per hour" note={`7 days, ${countText(total)} in total`}>
      <CardBody>
        <BarChart
          label="Dead letters per hour, 7 days"
          name="unknown"
          bars={bars}
          timeOf={(at) => clockText(at, now, 'local')}
        />
      </CardBody>
    </Card>
  )
}
