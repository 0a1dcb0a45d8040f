import { ApiError } from '@redrive/api'
import { useParams } from '@tanstack/react-router'
import { Card } from '../../components/card.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { useRun } from '../../data/runs.ts'
import { Page } from '../../shell/page.tsx'
import { NotFound } from '../not-found.tsx'
import { PlanView } from './plan-view.tsx'
import { RunView } from './run-view.tsx'
import './run.css'

const CRUMBS = [{ label: 'Replays', to: '/replays' }]

/** A run: its preview until it is approved, then its progress. */
export function RunScreen() {
  const { id } = useParams({ from: '/replays/$id' })
  const found = useRun(id)
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
      {run.state === 'planned' ? <PlanView key={id} run={run} /> : <RunView key={id} run={run} />}
    </Page>
  )
}
