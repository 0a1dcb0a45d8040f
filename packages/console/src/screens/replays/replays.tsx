import type { Run } from '@redrive/api'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useNow } from '../../clock.ts'
import { Card } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { Meter } from '../../components/meter.tsx'
import { Status, Tag } from '../../components/status.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { personName } from '../../data/permissions.ts'
import { type Me, runsQuery } from '../../data/queries.ts'
import { useListKeys } from '../../list/use-list-keys.ts'
import { runPath } from '../../paths.ts'
import { Page } from '../../shell/page.tsx'
import { cappedText } from '../../words/numbers.ts'
import { isExpired, PLAN_LIFE_MS } from '../../words/plan.ts'
import { runParts } from '../../words/run-progress.ts'
import { RUN_VIEWS, type RunView } from '../../address-values.ts'
import { inView, outcomeText, runTitle, sectionOf, sizeOf } from '../../words/runs.ts'
import { durationText } from '../../words/times.ts'
import '../../components/table.css'
import '../run/run.css'

const VIEW_NAMES: Readonly<Record<RunView, string>> = {
  all: 'All',
  active: 'Active',
  planned: 'Awaiting approval',
  unconfirmed: 'Unconfirmed outcomes',
  mine: 'Planned by me',
}

/** 200: the most that the API returns in one page. */
const LIMIT = 200
const NOTHING: ReadonlySet<string> = new Set()

/** Which runs need attention. */
export function Replays() {
  const me = useMe()
  const navigate = useNavigate({ from: '/replays' })
  const { view = 'all' } = useSearch({ from: '/replays' })
  const found = useLiveQuery(runsQuery([], LIMIT), 5_000)
  const all = found.data ?? []
  const runs = all.filter((run) => inView(run, view, me.person))
  return (
    <Page title="Replays" isHeading>
      <Tabs
        label="Views"
        tabs={RUN_VIEWS.map((name) => ({
          name,
          label: VIEW_NAMES[name],
          count:
            found.data === undefined
              ? undefined
              : cappedText(
                  all.filter((run) => inView(run, name, me.person)).length,
                  all.length === LIMIT,
                ),
        }))}
        current={view}
        onChange={(name) => void navigate({ search: { view: name } })}
      />
      {found.data === undefined ? (
        <Card>
          {found.error === null ? (
            <Skeleton rows={6} />
          ) : (
            <LoadError what="replays" error={found.error} onRetry={() => void found.refetch()} />
          )}
        </Card>
      ) : runs.length === 0 ? (
        <Card>
          <Empty
            title={
              view === 'all' ? 'No replay yet.' : `No replay in the view "${VIEW_NAMES[view]}".`
            }
          >
            {view === 'all' ? 'Open a group and choose Replay… to plan one.' : undefined}
          </Empty>
        </Card>
      ) : (
        <RunTable runs={runs} />
      )}
    </Page>
  )
}

const SECTIONS = ['Active', 'Awaiting approval', 'Ended'] as const

function RunTable({ runs }: { readonly runs: readonly Run[] }) {
  const me = useMe()
  const navigate = useNavigate()
  const sections = SECTIONS.map((name) => ({
    name,
    runs: runs
      .filter((run) => sectionOf(run) === name)
      .toSorted((one, other) => Number(other.state === 'paused') - Number(one.state === 'paused')),
  })).filter((section) => section.runs.length > 0)
  const { focused } = useListKeys({
    ids: sections.flatMap((section) => section.runs.map(({ id }) => id)),
    selected: NOTHING,
    onSelect: () => undefined,
    onOpen: (id) => void navigate({ to: runPath(id) }),
  })
  return (
    <Card
      footer={
        <>
          <span>
            {cappedText(runs.length, runs.length === LIMIT)} {runs.length === 1 ? 'run' : 'runs'}
          </span>
          <span className="grow" />
          <span className="row only-wide">
            Move <Kbd keys="j k" /> Open <Kbd keys="↵" />
          </span>
        </>
      }
    >
      <table className="table runs-table">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Run</th>
            <th scope="col" className="runs-progress only-wide">
              Progress
            </th>
            <th scope="col" className="only-wide">
              Outcome
            </th>
            <th scope="col" className="num">
              Planned
            </th>
          </tr>
        </thead>
        {sections.map((section) => (
          <tbody key={section.name}>
            <tr className="table-section">
              <th colSpan={5} scope="rowgroup">
                <b>{section.name}</b> {cappedText(section.runs.length, false)}
              </th>
            </tr>
            {section.runs.map((run) => (
              <tr key={run.id} data-focused={run.id === focused ? '' : undefined}>
                <td>
                  <Status state={run.state} />
                </td>
                <td>
                  <div className="row">
                    <Link to={runPath(run.id)} className="runs-title">
                      {runTitle(run)}
                    </Link>
                    {run.isChanged ? <Tag text="changes messages" /> : null}
                  </div>
                  <div className="small quiet">
                    <code>{run.id.slice(-8)}</code> {peopleText(run, me)}
                  </div>
                </td>
                <td className="only-wide">
                  {section.name === 'Awaiting approval' ? (
                    '–'
                  ) : (
                    <Meter total={sizeOf(run)} parts={runParts(run)} />
                  )}
                </td>
                <td className="only-wide quiet">
                  <Outcome run={run} />
                </td>
                <td className="num quiet">
                  <Time at={run.plannedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </Card>
  )
}

const peopleText = ({ plannedBy, approvedBy }: Run, me: Me): string =>
  `${plannedBy === 'redrive' ? 'automatic' : personName(plannedBy, me)}${
    approvedBy === undefined ? '' : `, approved by ${personName(approvedBy, me)}`
  }`

function Outcome({ run }: { readonly run: Run }) {
  const now = useNow()
  if (isExpired(run, now)) return 'Expired'
  if (run.state === 'planned')
    return `Expires in ${durationText(run.plannedAt + PLAN_LIFE_MS - now)}`
  if (run.state === 'paused' && run.pauseReason !== undefined) return run.pauseReason
  if (run.state === 'plan_expired') return 'Not published'
  return outcomeText(run)
}
