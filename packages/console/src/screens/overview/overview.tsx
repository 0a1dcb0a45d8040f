import type { Group } from '@redrive/api'
import { Card } from '../../components/card.tsx'
import { Command } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Mark } from '../../components/icon.tsx'
import { Note } from '../../components/note.tsx'
import { useNow } from '../../clock.ts'
import { useLiveQuery } from '../../data/live.ts'
import { openGroupsQuery, overviewQuery, runsQuery, sourcesQuery } from '../../data/queries.ts'
import { ACTIVE_STATES } from '../../shell/counts.ts'
import { Page } from '../../shell/page.tsx'
import { decisionsOf, type Verdict, verdictOf } from '../../words/verdict.ts'
import { CalmChart } from './calm-chart.tsx'
import { Decisions } from './decisions.tsx'
import { Kpis } from './kpis.tsx'
import { RunsCard } from './runs-card.tsx'
import { SourcesCard } from './sources-card.tsx'
import './overview.css'

const NO_GROUPS: readonly Group[] = []

/** The first screen: whether anything is wrong, since when, better or worse, and what to do. */
export function Overview() {
  const now = useNow()
  const overview = useLiveQuery(overviewQuery, 2_000)
  const groupPage = useLiveQuery(openGroupsQuery, 5_000)
  const sources = useLiveQuery(sourcesQuery, 5_000)
  const runs = useLiveQuery(runsQuery(ACTIVE_STATES, 50), 5_000)
  const failed = [overview, groupPage, sources].find(
    ({ data, error }) => error && data === undefined,
  )
  if (overview.data === undefined || groupPage.data === undefined || sources.data === undefined) {
    return (
      <Page title="Overview" isHeading>
        <Card>
          {failed === undefined ? (
            <Skeleton rows={6} />
          ) : (
            <LoadError
              what="the overview"
              error={failed.error}
              onRetry={() => void failed.refetch()}
            />
          )}
        </Card>
      </Page>
    )
  }
  const groups = groupPage.data.groups ?? NO_GROUPS
  const decisions = decisionsOf(groups, overview.data.alerts)
  const { depth, freezeReason } = overview.data
  const verdict = verdictOf({ depth, decisions, sources: sources.data, now })
  return (
    <Page title="Overview">
      {freezeReason === undefined ? null : <Frozen reason={freezeReason} />}
      <div className="verdict">
        <VerdictText verdict={verdict} />
        {verdict.isCalm ? null : (
          <Kpis overview={overview.data} groups={groups} sources={sources.data} now={now} />
        )}
      </div>
      {sources.data.length === 0 ? <NoSource /> : null}
      {verdict.isCalm && sources.data.length > 0 ? <CalmChart now={now} /> : null}
      {depth === 0 ? null : (
        <Decisions
          decisions={decisions}
          groups={groups}
          hasMore={groupPage.data.nextCursor !== undefined}
          depth={depth}
          runs={runs.data ?? []}
          isFrozen={freezeReason !== undefined}
          now={now}
        />
      )}
      <div className="halves">
        {sources.data.length === 0 ? null : <SourcesCard sources={sources.data} />}
        <RunsCard active={runs.data ?? []} />
      </div>
    </Page>
  )
}

const VerdictText = ({ verdict: { isCalm, title, sentences } }: { readonly verdict: Verdict }) => (
  <div className="verdict-text">
    <Mark shape={isCalm ? 'done' : 'open'} tone={isCalm ? 'good' : 'bad'} size={20} />
    <div>
      <h1>{title}</h1>
      <p>{sentences.join(' ')}</p>
    </div>
  </div>
)

const Frozen = ({ reason }: { readonly reason: string }) => (
  <Note tone="bad" shape="pause" role="alert">
    <div className="stack" data-gap="tight">
      <span>
        <b>Replays are frozen.</b> {reason}
      </span>
      <Command text="redrive replay acknowledge-restore" />
    </div>
  </Note>
)

const NoSource = () => (
  <Card title="Sources">
    <Empty title="No source is configured, or no dead letter was ingested yet.">
      Add a source to <code>redrive.config.yaml</code> and restart the server. This command writes
      an example for the brokers of a project:
    </Empty>
    <div className="card-body">
      <Command text="npx redrive init" />
    </div>
  </Card>
)
