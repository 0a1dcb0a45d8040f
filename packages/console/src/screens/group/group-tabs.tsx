import type { Group, Run } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import { Status } from '../../components/status.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { explanationQuery, messagesQuery } from '../../data/queries.ts'
import { useKeys } from '../../keys.ts'
import { messagePath, runPath } from '../../paths.ts'
import { bytesText, countText } from '../../words/numbers.ts'
import { outcomeText, runTitle } from '../../words/runs.ts'
import { GROUP_TABS, type GroupTab } from '../../words/group-filter.ts'
import { MergedGroups } from './merged-groups.tsx'
import '../../components/table.css'

export interface GroupTabsProps {
  readonly group: Group
  readonly tab: GroupTab
  readonly runs: readonly Run[]
}

/** The newest messages of the group, why they are one group, and its replays. */
export function GroupTabs({ group, tab, runs }: GroupTabsProps) {
  const navigate = useNavigate({ from: '/groups/$id' })
  const open = (name: GroupTab) =>
    void navigate({ search: (search) => ({ ...search, tab: name }), replace: true })
  const move = (step: number) => {
    const at = GROUP_TABS.indexOf(tab) + step
    open(GROUP_TABS[(at + GROUP_TABS.length) % GROUP_TABS.length] ?? 'messages')
  }
  useKeys({ '[': () => move(-1), ']': () => move(1) })
  return (
    <Card>
      <div className="group-tabs">
        <Tabs
          label="Details of the group"
          tabs={[
            { name: 'messages', label: 'Messages', count: countText(group.count) },
            { name: 'why', label: 'Grouping' },
            { name: 'replays', label: 'Replays', count: countText(runs.length) },
          ]}
          current={tab}
          onChange={open}
        >
          <Link to="/messages" search={{ q: `group:${group.id}` }} className="link small only-wide">
            Open in Messages
          </Link>
        </Tabs>
      </div>
      {tab === 'messages' ? <Messages group={group} /> : null}
      {tab === 'why' ? <Why group={group} /> : null}
      {tab === 'replays' ? <Replays runs={runs} /> : null}
    </Card>
  )
}

/** 10 newest: the list of messages has all of them. */
const SHOWN = 10
const ALL =
  'status:open status:replaying status:unknown status:not_returned status:resolved status:discarded'

function Messages({ group }: { readonly group: Group }) {
  const found = useLiveQuery(messagesQuery(`group:${group.id} ${ALL}`, SHOWN), 5_000)
  if (found.error !== null && found.data === undefined)
    return <LoadError what="messages" error={found.error} onRetry={() => void found.refetch()} />
  if (found.data === undefined) return <Skeleton rows={5} />
  if (found.data.deadLetters.length === 0) return <Empty title="Every message has expired." />
  return (
    <div className="table-scroll">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Message</th>
            <th scope="col">Key</th>
            <th scope="col">Status</th>
            <th scope="col" className="num">
              Failed
            </th>
            <th scope="col" className="num only-wide">
              Attempts
            </th>
            <th scope="col" className="num only-wide">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {found.data.deadLetters.map(
            ({ id, key, status, lastFailedAt, attempts, payloadBytes }) => (
              <tr key={id}>
                <td>
                  <Link
                    to={messagePath(id)}
                    search={{ from: `group:${group.id} ${ALL}` }}
                    className="link mono"
                  >
                    {id.slice(-8)}
                  </Link>
                </td>
                <td className="mono group-key">
                  <Peer text={key} most={80} />
                </td>
                <td>
                  <Status state={status} />
                </td>
                <td className="num quiet">
                  <Time at={lastFailedAt} />
                </td>
                <td className="num quiet only-wide">{countText(attempts)}</td>
                <td className="num quiet only-wide">{bytesText(payloadBytes)}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  )
}

function Why({ group }: { readonly group: Group }) {
  const found = useQuery(explanationQuery(group.id))
  if (found.error !== null) return <LoadError what="the grouping" error={found.error} />
  if (found.data === undefined) return <Skeleton rows={4} />
  const { shared, sample, algorithm, signature, unknown } = found.data
  const mono = (text: string | undefined) =>
    text === undefined ? undefined : (
      <code>
        <Peer text={text} most={500} />
      </code>
    )
  return (
    <CardBody>
      <div className="stack">
        <p className="quiet">Messages are in this group because these facts are equal:</p>
        <Facts
          facts={[
            { name: 'Source', value: shared.source },
            { name: 'Class', value: shared.class },
            { name: 'Handler', value: mono(shared.handler) },
            { name: 'Code', value: mono(shared.code) },
            { name: 'Type', value: mono(shared.type) },
            { name: 'Frame', value: mono(shared.frame) },
            { name: 'Message', value: mono(shared.message) },
            { name: 'First message', value: mono(sample) },
            { name: 'Signature', value: mono(`${signature} (version ${algorithm})`) },
            { name: 'Not known', value: unknown.length === 0 ? undefined : unknown.join(', ') },
          ]}
        />
        {group.mergedCount === 0 ? null : <MergedGroups group={group} />}
      </div>
    </CardBody>
  )
}

function Replays({ runs }: { readonly runs: readonly Run[] }) {
  if (runs.length === 0)
    return <Empty title="No replay of this group among the latest 50 of its source." />
  return (
    <table className="table">
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <td>
              <Link to={runPath(run.id)}>
                <Status state={run.state} title={runTitle(run)} />
              </Link>
            </td>
            <td className="quiet only-wide">{outcomeText(run)}</td>
            <td className="num faint">
              <Time at={run.plannedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
