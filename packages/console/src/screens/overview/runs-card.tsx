import type { Run } from '@redrive/api'
import { Link } from '@tanstack/react-router'
import { Card } from '../../components/card.tsx'
import { Meter } from '../../components/meter.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { runsQuery } from '../../data/queries.ts'
import { runPath } from '../../paths.ts'
import { countText } from '../../words/numbers.ts'
import { runParts } from '../../words/run-progress.ts'
import { lastEnded, outcomeText, runTitle, sizeOf } from '../../words/runs.ts'

const ENDED = ['done', 'cancelled'] as const
/** 50: many plans may have been replaced since the last run ended. */
const SEARCHED = 50
const WORDS = { running: 'running', paused: 'paused', planned: 'awaiting approval' } as const

/** Active runs, and the last two that ended. Without any run it vanishes. */
export function RunsCard({ active }: { readonly active: readonly Run[] }) {
  const ended = lastEnded(useLiveQuery(runsQuery(ENDED, SEARCHED), 30_000).data ?? [], 2)
  const runs = [...active.slice(0, 4), ...ended]
  if (runs.length === 0) return null
  const note = (Object.keys(WORDS) as (keyof typeof WORDS)[])
    .map((state) => ({ state, count: active.filter((run) => run.state === state).length }))
    .filter(({ count }) => count > 0)
    .map(({ state, count }) => `${countText(count)} ${WORDS[state]}`)
    .join(', ')
  return (
    <Card
      title={active.length === 0 ? 'Last replays' : 'Replays'}
      note={note}
      action={
        <Link to="/replays" className="link small">
          All replays
        </Link>
      }
    >
      <ul className="runs">
        {runs.map((run) => (
          <RunLine key={run.id} run={run} />
        ))}
      </ul>
    </Card>
  )
}

const RunLine = ({ run }: { readonly run: Run }) => (
  <li className="runs-line">
    <div className="row">
      <Link to={runPath(run.id)} className="cut strong">
        <Status state={run.state} title={runTitle(run)} />
      </Link>
      <span className="grow" />
      <span className="faint small">
        {run.state === 'running' ? (
          `${run.options.ratePerSecond}/s`
        ) : (
          <Time at={run.endedAt ?? run.pausedAt ?? run.plannedAt} />
        )}
      </span>
    </div>
    {run.state === 'running' || run.state === 'paused' ? (
      <Meter total={sizeOf(run)} parts={runParts(run)} />
    ) : null}
    <div className="small quiet">
      {run.state === 'planned' ? 'Awaiting approval' : (run.pauseReason ?? outcomeText(run))}
    </div>
  </li>
)
