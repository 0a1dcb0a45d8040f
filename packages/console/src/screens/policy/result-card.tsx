import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Empty, Skeleton } from '../../components/feedback.tsx'
import { Mark } from '../../components/icon.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import type { Simulation } from '../../data/simulation.ts'
import type { SimulationResult, SimulationRequest } from '../../simulation/protocol.ts'
import { countText } from '../../words/numbers.ts'
import { resultRows, type ResultRow, shownSeconds } from '../../words/scenario.ts'
import { LoadChart, type LoadLine, LoadTable } from './load-chart.tsx'

export interface ResultCardProps {
  readonly request: SimulationRequest
  readonly simulation: Simulation & { readonly isStopped: boolean }
  readonly onStop: () => void
}

/** The load of the policies and whether they meet the goals. */
export function ResultCard({ request, simulation, onStop }: ResultCardProps) {
  const { policy, own, other, isRunning, problem, isStopped } = simulation
  if (problem !== undefined)
    return (
      <Note tone="bad" shape="fail" role="alert">
        <b>Cannot simulate this policy.</b>
        <p className="policy-text">
          <Peer text={problem} />
        </p>
      </Note>
    )
  if (own === undefined || policy === undefined)
    return (
      <Card
        title="Calls per second"
        action={isRunning ? <Stop onStop={onStop} /> : null}
        note={isRunning ? 'simulating this policy' : undefined}
      >
        {isStopped ? (
          <Empty title="Stopped.">Simulate again to see a result.</Empty>
        ) : (
          <Skeleton rows={6} />
        )}
      </Card>
    )
  const results = other === undefined ? [own] : [own, other]
  const lines: readonly LoadLine[] = [
    { name: 'own', title: own.title, load: own.load },
    ...(other === undefined
      ? []
      : [{ name: 'other' as const, title: other.title, load: other.load }]),
  ]
  const outageFromS = policy.calmMs / 1_000
  const seconds = shownSeconds(request, results, policy.calmMs)
  return (
    <Loaded
      lines={lines}
      seconds={seconds}
      note={isRunning ? 'simulating the textbook policy' : undefined}
      action={isRunning ? <Stop onStop={onStop} /> : null}
      chart={
        <LoadChart
          lines={lines}
          seconds={seconds}
          capacity={request.weather.capacityPerSecond}
          outageFromS={outageFromS}
          outageUntilS={outageFromS + request.weather.outageMs / 1_000}
        />
      }
      capacity={request.weather.capacityPerSecond}
      rows={resultRows(policy.goals)}
      own={own}
      other={other}
    />
  )
}

const Stop = ({ onStop }: { readonly onStop: () => void }) => (
  <Button size="small" onClick={onStop}>
    Stop
  </Button>
)

interface LoadedProps {
  readonly lines: readonly LoadLine[]
  readonly seconds: number
  readonly note: string | undefined
  readonly action: React.ReactNode
  readonly chart: React.ReactNode
  readonly capacity: number
  readonly rows: readonly ResultRow[]
  readonly own: SimulationResult
  readonly other: SimulationResult | undefined
}

function Loaded(props: LoadedProps) {
  const { lines, seconds, note, action, chart, capacity, rows, own, other } = props
  const [isTable, setTable] = useState(false)
  return (
    <Card
      title="Calls per second"
      note={note}
      action={action}
      footer={
        <>
          <span>Simulated with the production core. No real calls.</span>
          <span className="grow" />
          <Button
            size="small"
            kind="ghost"
            aria-expanded={isTable}
            onClick={() => setTable(!isTable)}
          >
            Data as table
          </Button>
        </>
      }
    >
      <CardBody>
        <ul className="policy-legend">
          {lines.map(({ name, title }) => (
            <li key={name}>
              <i data-line={name} />
              {title}
            </li>
          ))}
          <li>
            <i data-line="capacity" />
            Capacity, {countText(capacity)}
          </li>
        </ul>
        {chart}
      </CardBody>
      {isTable ? <LoadTable lines={lines} seconds={seconds} /> : null}
      <div className="table-scroll">
        <table className="table policy-results">
          <thead>
            <tr>
              <th scope="col">Result</th>
              <th scope="col" className="num">
                This policy
              </th>
              {other === undefined ? null : (
                <th scope="col" className="num">
                  Textbook
                </th>
              )}
              <th scope="col" className="num">
                Goal
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.name}>
                <th scope="row">{row.name}</th>
                <Value row={row} one={own} />
                {other === undefined ? null : <Value row={row} one={other} />}
                <td className="policy-goal quiet">{row.goal}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  )
}

const Value = ({ row, one }: { readonly row: ResultRow; readonly one: SimulationResult }) => {
  const isMet = row.isMet(one)
  return (
    <td className="policy-goal">
      <span className="policy-value" data-missed={isMet ? undefined : ''}>
        <Mark shape={isMet ? 'done' : 'fail'} tone={isMet ? 'good' : 'bad'} />
        <b>{row.value(one)}</b>
        <span className="visually-hidden">{isMet ? ', goal met' : ', goal missed'}</span>
      </span>
    </td>
  )
}
