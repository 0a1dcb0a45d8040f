import { BarChart } from '../components/bar-chart.tsx'
import { Facts } from '../components/card.tsx'
import { Checkbox } from '../components/checkbox.tsx'
import { Meter } from '../components/meter.tsx'
import { Peer } from '../components/peer.tsx'
import { Sparkline } from '../components/sparkline.tsx'
import { Status } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { Timeline } from '../components/timeline.tsx'
import { cappedText, countText } from '../words/numbers.ts'
import { clockText } from '../words/times.ts'
import { Sample } from './sample.tsx'
import '../components/table.css'

/** A fixed time, so that pictures of the page are equal. */
const NOW = Date.UTC(2026, 10, 18, 3, 4)
const MINUTE_MS = 60_000
const HILL = Array.from({ length: 120 }, (_, at) =>
  at < 98 || at > 115 ? 0 : Math.round(3_104 * Math.exp(-(((at - 106) / 6) ** 2))),
)
const HOSTILE = 'abc\u202Egnp.exe \u0007 <script>alert(1)</script> \u0627\u0644 z\u0335\u0321\u0322'
const OPENED_AT = Date.now()
const NOTHING = () => undefined

export const DataSection = () => (
  <>
    <Sample title="Table" files="table" isWide>
      <div className="table-scroll">
        <table className="table">
          <thead>
            <tr>
              <th>
                <Checkbox label="Select all" isChecked={false} isPartly onChange={NOTHING} />
              </th>
              <th>What failed</th>
              <th>State</th>
              <th className="num">Open</th>
            </tr>
          </thead>
          <tbody>
            {[
              { name: 'connect ECONNREFUSED payments-api:<n>', open: 38_112 },
              { name: 'expected string, received undefined at /currency', open: 858 },
              { name: 'invoice <n> is already paid', open: 573 },
            ].map(({ name, open }, at) => (
              <tr
                key={name}
                data-focused={at === 0 ? '' : undefined}
                data-selected={at === 1 ? '' : undefined}
              >
                <td>
                  <Checkbox label={`Select ${name}`} isChecked={at === 1} onChange={NOTHING} />
                </td>
                <td className="mono">{name}</td>
                <td>
                  <Status state={at === 2 ? 'regressed' : 'open'} />
                </td>
                <td className="num strong">{countText(open)}</td>
              </tr>
            ))}
            <tr className="table-section">
              <td />
              <td>
                <b>payments</b> 27 groups
              </td>
              <td />
              <td className="num strong">{cappedText(1_000, true)}</td>
            </tr>
          </tbody>
        </table>
      </div>
    </Sample>
    <Sample title="Chart" files="bar-chart" isWide>
      <BarChart
        label="Failures per minute"
        name="transient"
        bars={HILL.map((count, at) => ({ at: NOW + (at - 120) * MINUTE_MS, count }))}
        timeOf={(at) => clockText(at, NOW, 'utc')}
        marks={[
          { at: NOW - 22 * MINUTE_MS, text: '02:42 first' },
          { at: NOW - 4 * MINUTE_MS, text: '03:00 last' },
        ]}
      />
      <BarChart
        label="No failures"
        name="unknown"
        bars={[{ at: NOW, count: 0 }]}
        timeOf={(at) => clockText(at, NOW, 'utc')}
      />
    </Sample>
    <Sample title="Sparklines" files="sparkline">
      <Sparkline values={HILL} name="transient" />
      <Sparkline values={[0, 3, 1, 4, 1, 5, 9, 2, 6]} name="schema" height={28} />
      <Sparkline values={[]} name="business" height={28} />
    </Sample>
    <Sample title="Progress" files="meter">
      <Meter
        total={1_160}
        parts={[
          { tone: 'good', count: 412 },
          { tone: 'bad', count: 1 },
          { tone: 'run', count: 90, isOpen: true },
        ]}
      />
    </Sample>
    <Sample title="Facts and times" files="card time">
      <Facts
        facts={[
          { name: 'Source', value: 'orders' },
          { name: 'Now', value: <Time at={OPENED_AT} /> },
          { name: 'Long ago', value: <Time at={NOW - 400 * 86_400_000} /> },
          { name: 'Left out', value: undefined },
        ]}
      />
    </Sample>
    <Sample title="Text of a peer" files="peer">
      <p>
        <Peer text={HOSTILE} />
      </p>
    </Sample>
    <Sample title="Timeline" files="timeline">
      <Timeline
        events={[
          { id: '1', at: NOW, text: 'Ada assigned it to herself' },
          {
            id: '2',
            at: NOW - 5 * MINUTE_MS,
            text: 'Chen commented',
            detail: 'payments-api was rolled back at 02:57.',
          },
          {
            id: '3',
            at: NOW - 23 * MINUTE_MS,
            text: 'First failure',
            mark: { shape: 'open', tone: 'bad' },
          },
        ]}
      />
    </Sample>
  </>
)
