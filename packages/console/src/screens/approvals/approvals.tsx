import type { Run } from '@redrive/api'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useNow } from '../../clock.ts'
import { lookOf } from '../../components/button.tsx'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { Pill, Status, Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { can, personName } from '../../data/permissions.ts'
import { runsQuery } from '../../data/queries.ts'
import { useRun } from '../../data/runs.ts'
import { groupPath, runPath } from '../../paths.ts'
import { Page } from '../../shell/page.tsx'
import { gateText } from '../../words/gates.ts'
import { countText, percentText } from '../../words/numbers.ts'
import { expiryText, paceText, proofTexts } from '../../words/plan.ts'
import { groupOfRun, runTitle, sizeOf } from '../../words/runs.ts'
import { ApproveButton } from '../run/approve-button.tsx'
import { Change } from '../run/change-card.tsx'
import { FirstItems } from '../run/preview-card.tsx'
import { ReplacedNote } from '../run/replaced-note.tsx'
import '../run/run.css'

/** What waits for an approval, and one plan in detail. */
export function Approvals() {
  const me = useMe()
  const navigate = useNavigate({ from: '/approvals' })
  const { run: chosen } = useSearch({ from: '/approvals' })
  const planned = useLiveQuery(runsQuery(['planned'], 50), 5_000)
  const recent = useLiveQuery(
    runsQuery(['running', 'done', 'cancelled', 'plan_expired'], 5),
    15_000,
  )
  const runs = (planned.data ?? []).filter(
    (run) => can(me, 'approve', run.source) || run.plannedBy === me.person,
  )
  // The list of an earlier visit may have plans that were replaced.
  const first = planned.isFetchedAfterMount ? runs[0]?.id : undefined
  // The first plan is chosen once. A later plan must not take its place under the pointer.
  useEffect(() => {
    if (chosen === undefined && first !== undefined)
      void navigate({ search: { run: first }, replace: true })
  }, [chosen, first, navigate])
  const current = chosen
  return (
    <Page title="Approvals" isHeading>
      {planned.data === undefined ? (
        <Card>
          {planned.error === null ? (
            <Skeleton rows={5} />
          ) : (
            <LoadError
              what="approvals"
              error={planned.error}
              onRetry={() => void planned.refetch()}
            />
          )}
        </Card>
      ) : (
        <div className="approvals">
          <div className="stack">
            <Card title="Awaiting approval" note={countText(runs.length)}>
              {runs.length === 0 ? (
                <Empty title="No plan awaits an approval." />
              ) : (
                <ul className="approvals-list">
                  {runs.map((run) => (
                    <PlanLine key={run.id} run={run} isCurrent={run.id === current} />
                  ))}
                </ul>
              )}
            </Card>
            {recent.data === undefined || recent.data.length === 0 ? null : (
              <Card title="Recent">
                <ul className="approvals-list">
                  {recent.data.map((run) => (
                    <li key={run.id}>
                      <Link to={runPath(run.id)}>
                        <b>{runTitle(run)}</b>
                        <span className="row small quiet">
                          <Status state={run.state} />
                          {run.approvedBy === undefined
                            ? 'not approved'
                            : `approved by ${run.approvedBy === me.person ? 'you' : personName(run.approvedBy)}`}
                        </span>
                      </Link>
                    </li>
                  ))}
                </ul>
              </Card>
            )}
          </div>
          {current === undefined ? null : <Detail key={current} id={current} planned={runs} />}
        </div>
      )}
    </Page>
  )
}

const PlanLine = ({ run, isCurrent }: { readonly run: Run; readonly isCurrent: boolean }) => {
  const me = useMe()
  const now = useNow()
  return (
    <li>
      <Link
        to="/approvals"
        search={{ run: run.id }}
        replace
        aria-current={isCurrent ? 'true' : undefined}
      >
        <span className="row">
          <b>{runTitle(run)}</b>
          <span className="grow" />
          <span className="small quiet">{expiryText(run, now)}</span>
        </span>
        <span className="row small quiet">
          {run.plannedBy === me.person ? 'You' : personName(run.plannedBy)},{' '}
          <Time at={run.plannedAt} isAgo />
          {run.isChanged ? <Tag text="changes messages" /> : null}
        </span>
      </Link>
    </li>
  )
}

interface DetailProps {
  readonly id: string
  /** The plans that await an approval. */
  readonly planned: readonly Run[]
}

function Detail({ id, planned }: DetailProps) {
  const me = useMe()
  const { found } = useRun(id)
  if (found.error !== null && found.data === undefined)
    return (
      <Card>
        <LoadError what="the plan" error={found.error} onRetry={() => void found.refetch()} />
      </Card>
    )
  if (found.data === undefined)
    return (
      <Card>
        <Skeleton rows={6} />
      </Card>
    )
  const run = found.data
  const isOwn = run.plannedBy === me.person
  const group = groupOfRun(run)
  const skipped = Object.entries(run.skipped)
  return (
    <div className="stack">
      <Card
        title={runTitle(run)}
        action={<Pill state={run.state} />}
        footer={
          run.state === 'planned' ? (
            <>
              <span>The run starts immediately. Operators can pause it.</span>
              <span className="grow" />
              <Link to={runPath(run.id)} {...lookOf({})}>
                Open the plan
              </Link>
              <ApproveButton run={run} />
            </>
          ) : (
            <>
              <span className="grow" />
              <Link to={runPath(run.id)} {...lookOf({ kind: 'primary' })}>
                Open the run
              </Link>
            </>
          )
        }
      >
        <ReplacedNote
          run={run}
          planned={planned}
          isBar
          linkTo={(next) => ({ to: '/approvals', search: { run: next.id } })}
        />
        {isOwn && !me.canApproveOwn && run.state === 'planned' ? (
          <Note tone="warn" shape="wait" isBar>
            You planned this. Another person approves.
          </Note>
        ) : null}
        <CardBody>
          <Facts
            facts={[
              { name: 'Planned by', value: isOwn ? 'you' : personName(run.plannedBy) },
              { name: 'Note', value: run.note === '' ? undefined : <Peer text={run.note} /> },
              {
                name: 'Messages',
                value: (
                  <>
                    <b>{countText(sizeOf(run))}</b>
                    {group === undefined ? null : (
                      <>
                        {' '}
                        of group{' '}
                        <Link to={groupPath(group)} className="link mono">
                          {group.slice(-8)}
                        </Link>
                      </>
                    )}
                  </>
                ),
              },
              {
                name: 'Skipped',
                value:
                  skipped.length === 0
                    ? undefined
                    : skipped
                        .map(
                          ([reason, count]) =>
                            `${countText(count)} ${gateText(reason).title.toLowerCase()}`,
                        )
                        .join(', '),
              },
              { name: 'Target', value: run.source },
              { name: 'Pace', value: paceText(run, sizeOf(run)) },
              {
                name: 'Pauses if',
                value: `more than ${percentText(run.options.maxFailureRatio)} of the latest messages fail again`,
              },
              { name: 'Outcomes', value: proofTexts(run).text },
              {
                name: 'Included',
                value:
                  run.options.overrides.length === 0
                    ? undefined
                    : run.options.overrides
                        .map((one) => gateText(one).title.toLowerCase())
                        .join(', '),
              },
              {
                name: 'Plan hash',
                value: (
                  <>
                    <code title={run.hash}>{run.hash.slice(0, 16)}…</code> covers messages, change,
                    rate and limits
                  </>
                ),
              },
            ]}
          />
        </CardBody>
      </Card>
      <Card title="Change">
        {run.isChanged ? (
          <Change run={run} />
        ) : (
          <CardBody>None. Messages are replayed unchanged.</CardBody>
        )}
      </Card>
      <FirstItems run={run} />
    </div>
  )
}
