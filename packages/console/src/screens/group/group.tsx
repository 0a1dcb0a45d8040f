import { ApiError, type Group } from '@redrive/api'
import { useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useNow } from '../../clock.ts'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { groupQuery, sourceRunsQuery } from '../../data/queries.ts'
import { Page } from '../../shell/page.tsx'
import { apiText } from '../../words/equivalents.ts'
import { groupOfRun } from '../../words/runs.ts'
import { suggestionFor } from '../../words/suggestion.ts'
import { NotFound } from '../not-found.tsx'
import { Activity } from './activity.tsx'
import { GroupChart } from './group-chart.tsx'
import { type GroupDialog, GroupDialogs } from './group-dialogs.tsx'
import { GroupHead } from './group-head.tsx'
import { GroupTabs } from './group-tabs.tsx'
import { SplitDialog } from './regroup-dialogs.tsx'
import { ReplayTarget } from './replay-target.tsx'
import { SuggestionCard } from './suggestion-card.tsx'
import './group.css'

/** One group: what failed, whether it stopped, and what to do. */
export function GroupScreen() {
  const { id } = useParams({ from: '/groups/$id' })
  const found = useLiveQuery(groupQuery(id), 5_000)
  const isMissing =
    found.error instanceof ApiError && ['not_found', 'invalid'].includes(found.error.code)
  if (isMissing) return <NotFound />
  if (found.data === undefined) {
    return (
      <Page title="Group" crumbs={CRUMBS} isHeading>
        <Card>
          {found.error === null ? (
            <Skeleton rows={6} />
          ) : (
            <LoadError what="the group" error={found.error} onRetry={() => void found.refetch()} />
          )}
        </Card>
      </Page>
    )
  }
  return <Loaded key={id} group={found.data.group} etag={found.data.etag} />
}

const CRUMBS = [{ label: 'Groups', to: '/groups' }]
const ENDED: readonly string[] = ['done', 'cancelled', 'plan_expired']

function Loaded({ group, etag }: { readonly group: Group; readonly etag: string }) {
  const now = useNow()
  const { tab = 'messages', range = '2h' } = useSearch({ from: '/groups/$id' })
  const [dialog, setDialog] = useState<GroupDialog | 'split'>()
  const runs = (useLiveQuery(sourceRunsQuery(group.source), 10_000).data ?? []).filter(
    (run) => groupOfRun(run) === group.id,
  )
  const run = runs.find(({ state }) => !ENDED.includes(state))
  const suggestion = suggestionFor({ group, now, run })
  const close = () => setDialog(undefined)
  return (
    <Page title={group.id.slice(-8)} crumbs={CRUMBS}>
      <GroupHead group={group} etag={etag} run={run} onDialog={setDialog} />
      <div className="columns">
        <div className="stack">
          <SuggestionCard group={group} suggestion={suggestion} runs={runs} now={now} />
          <GroupChart group={group} range={range} now={now} />
          <GroupTabs group={group} tab={tab} runs={runs} />
        </div>
        <aside className="stack">
          <ReplayTarget source={group.source} />
          <Activity group={group} />
          <Card title="Command line">
            <CardBody>
              <Equivalents
                cli={`redrive groups show ${group.id}`}
                api={apiText(`GET /api/v1/groups/${group.id}`)}
              />
            </CardBody>
          </Card>
        </aside>
      </div>
      {dialog === 'split' ? (
        <SplitDialog group={group} onClose={close} />
      ) : dialog === undefined ? null : (
        <GroupDialogs kind={dialog} groups={[group]} etag={etag} onClose={close} />
      )}
    </Page>
  )
}
