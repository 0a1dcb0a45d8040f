import { ApiError, type Run } from '@redrive/api'
import { useParams } from '@tanstack/react-router'
import { Card } from '../../components/card.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { runsQuery } from '../../data/queries.ts'
import { useRun } from '../../data/runs.ts'
import { Page } from '../../shell/page.tsx'
import { isWithdrawn } from '../../words/runs.ts'
import { NotFound } from '../not-found.tsx'
import { PlanView } from './plan-view.tsx'
import { ReplacedNote } from './replaced-note.tsx'
import { RunView } from './run-view.tsx'
import './run.css'

const CRUMBS = [{ label: 'Replays', to: '/replays' }]

/** A run: its preview until it is approved, then its progress. */
export function RunScreen() {
  const { id } = useParams({ from: '/replays/$id' })
  const { found, isStreamLost } = useRun(id)
  const isMissing =
    found.error instanceof ApiError && ['not_found', 'invalid'].includes(found.error.code)
  if (isMissing) return <NotFound />
  if (found.data === undefined) {
    return (
      <Page title="Replay" crumbs={CRUMBS} isHeading>
        <Card>
          {found.error === null ? (
            <Skeleton rows={8} />
          ) : (
            <LoadError what="the run" error={found.error} onRetry={() => void found.refetch()} />
          )}
        </Card>
      </Page>
    )
  }
  const run = found.data
  return (
    <Page title={id.slice(-8)} crumbs={CRUMBS}>
      {isWithdrawn(run) ? <Replaced run={run} /> : null}
      {isStreamLost && (run.state === 'running' || run.state === 'paused') ? (
        <Note tone="warn" shape="warn" role="status">
          <b>Live progress is interrupted.</b> The page reads the run every 2 seconds until the
          stream is open again.
        </Note>
      ) : null}
      {run.state === 'planned' ? <PlanView key={id} run={run} /> : <RunView key={id} run={run} />}
    </Page>
  )
}

/** The link to the plan that replaced this one, for example in another tab. */
function Replaced({ run }: { readonly run: Run }) {
  const planned = useLiveQuery(runsQuery(['planned'], 50), 10_000).data ?? []
  return (
    <ReplacedNote
      run={run}
      planned={planned}
      linkTo={(next) => ({ to: '/replays/$id', params: { id: next.id } })}
    />
  )
}
