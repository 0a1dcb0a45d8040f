import type { Group, Run } from '@redrive/api'
import { Link } from '@tanstack/react-router'
import { Button, lookOf } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { FailureClass } from '../../components/failure-class.tsx'
import { Icon } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { trendQuery } from '../../data/trends.ts'
import { groupPath, groupsPath, runPath } from '../../paths.ts'
import { cappedText, countOf, countText, shareText } from '../../words/numbers.ts'
import { groupOfRun } from '../../words/runs.ts'
import { actionText, isGrowing, type Suggestion, suggestionFor } from '../../words/suggestion.ts'
import { clockText } from '../../words/times.ts'
import { barsOf, boundsOf, latestOf, peakOf, RANGES } from '../../words/trends.ts'

/** 5 decisions: more do not fit into one look. */
const SHOWN_MAX = 5

export interface DecisionsProps {
  readonly decisions: readonly Group[]
  readonly groups: readonly Group[]
  readonly hasMore: boolean
  readonly depth: number
  readonly runs: readonly Run[]
  readonly isFrozen: boolean
  readonly now: number
}

/** The groups that need a decision, each with a suggestion and its reason. */
export function Decisions(props: DecisionsProps) {
  const { decisions, groups, hasMore, depth, runs, isFrozen, now } = props
  const shown = decisions.slice(0, SHOWN_MAX)
  const rest = groups.filter(({ id }) => !shown.some((one) => one.id === id))
  const suggestions = shown.map((group) => suggestionFor({ group, now, run: runOf(runs, group) }))
  // One primary button per screen: the first replay that is suggested.
  const primary = suggestions.findIndex(({ kind }) => kind === 'replay')
  const { after, before } = boundsOf(RANGES['2h'], now)
  return (
    <Card
      className="decisions"
      title={shown.length === 0 ? 'Open groups' : 'Needs a decision'}
      note={shown.length === 0 ? 'None needs a decision' : countOf(decisions.length, 'group')}
      action={
        <Link to={groupsPath()} className="link small">
          All groups
        </Link>
      }
    >
      {shown.length === 0 ? null : (
        <div className="decisions-axis" aria-hidden="true">
          <span>What failed</span>
          <span className="decisions-ticks">
            {[after, (after + before) / 2, before].map((at) => (
              <span key={at}>{clockText(at, now, 'local')}</span>
            ))}
          </span>
          <span className="num">Open</span>
          <span />
        </div>
      )}
      {shown.map((group, at) => (
        <DecisionRow
          key={group.id}
          group={group}
          suggestion={suggestions[at] as Suggestion}
          run={runOf(runs, group)}
          share={group.openCount / depth}
          isPrimary={at === primary}
          isFrozen={isFrozen}
          now={now}
        />
      ))}
      {rest.length === 0 ? null : (
        <Link to={groupsPath()} className="decisions-rest">
          <span>
            {cappedText(rest.length, hasMore)} more {rest.length === 1 ? 'group' : 'groups'},{' '}
            {cappedText(
              rest.reduce((sum, { openCount }) => sum + openCount, 0),
              hasMore,
            )}{' '}
            open messages.
          </span>
          <span className="grow" />
          Show <Icon name="right" />
        </Link>
      )}
    </Card>
  )
}

const runOf = (runs: readonly Run[], { id }: Group) => runs.find((run) => groupOfRun(run) === id)

interface DecisionRowProps {
  readonly group: Group
  readonly suggestion: Suggestion
  readonly run: Run | undefined
  readonly share: number
  readonly isPrimary: boolean
  readonly isFrozen: boolean
  readonly now: number
}

function DecisionRow(props: DecisionRowProps) {
  const { group, suggestion, run, share, isPrimary, isFrozen, now } = props
  return (
    <article className="decision">
      <div className="decision-what">
        <div className="decision-lead">
          <Link to={groupPath(group.id)} className="decision-title">
            <Peer text={group.title} most={300} />
          </Link>
          <GroupFacts group={group} />
        </div>
        <p className="decision-todo">
          <Icon name="bulb" size={15} />
          <span>
            <b>{suggestion.title}</b> {suggestion.reason}
          </span>
        </p>
      </div>
      <Trend group={group} now={now} />
      <div className="decision-count">
        <b>{countText(group.openCount)}</b>
        <span>
          {group.replayingCount > 0
            ? `${countText(group.replayingCount)} in a run`
            : `${shareText(share)} of all`}
        </span>
      </div>
      <div className="decision-action">
        <Action {...{ group, suggestion, run, isPrimary, isFrozen }} />
      </div>
    </article>
  )
}

const GroupFacts = ({ group }: { readonly group: Group }) => (
  <div className="decision-facts">
    <FailureClass name={group.class} /> ·{' '}
    {group.code === undefined ? null : <CodeText code={group.code} />}
    {group.handler === undefined ? null : (
      <>
        <Peer text={group.handler} most={80} /> on{' '}
      </>
    )}
    <b>
      <Peer text={group.source} most={80} />
    </b>{' '}
    · first <Time at={group.firstSeenAt} isAgo /> · last <Time at={group.lastSeenAt} isAgo />
  </div>
)

const CodeText = ({ code }: { readonly code: string }) => (
  <>
    <code>
      <Peer text={code} most={80} />
    </code>{' '}
    ·{' '}
  </>
)

function Trend({ group, now }: { readonly group: Group; readonly now: number }) {
  const points = useLiveQuery(trendQuery('2h', group.id), 15_000).data ?? []
  const bars = barsOf(points, RANGES['2h'], now)
  const latest = latestOf(bars)
  return (
    <div className="decision-trend">
      {/* Without the current minute, which is not complete. */}
      <Sparkline values={bars.slice(0, -1).map(({ count }) => count)} name={group.class} />
      <div className="decision-trend-text">
        <span>peak {countText(peakOf(bars))} per min</span>
        <span data-growing={isGrowing(group, now) && latest > 0 ? '' : undefined}>
          {countText(latest)} now
        </span>
      </div>
    </div>
  )
}

interface ActionProps {
  readonly group: Group
  readonly suggestion: Suggestion
  readonly run: Run | undefined
  readonly isPrimary: boolean
  readonly isFrozen: boolean
}

/** The suggested action. Without the permission it opens the group instead. */
function Action({ group, suggestion, run, isPrimary, isFrozen }: ActionProps) {
  const me = useMe()
  const text = actionText(suggestion, group.openCount)
  if (run !== undefined) {
    return (
      <Link to={runPath(run.id)} {...lookOf({})}>
        {text}
      </Link>
    )
  }
  const isReplay = suggestion.kind === 'replay' || suggestion.kind === 'repair'
  if (!isReplay || !can(me, 'replay', group.source)) {
    return (
      <Link to={groupPath(group.id)} {...lookOf({})}>
        {isReplay ? `Review ${countText(group.openCount)}` : text}
      </Link>
    )
  }
  if (isFrozen) return <Button disabledReason="Replays are frozen.">{text}</Button>
  return (
    <Link
      to="/replays/new"
      search={{ group: group.id }}
      {...lookOf(isPrimary ? { kind: 'primary' } : {})}
    >
      {text}
    </Link>
  )
}
