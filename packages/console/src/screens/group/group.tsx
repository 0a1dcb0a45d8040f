import { ApiError, type Group } from '@redrive/api'
import { Link, useParams, useSearch, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useNow } from '../../clock.ts'
import { Button, lookOf } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { FailureClass } from '../../components/failure-class.tsx'
import { LoadError, problemOf, Skeleton } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Menu } from '../../components/menu.tsx'
import { Peer } from '../../components/peer.tsx'
import { Pill } from '../../components/status.tsx'
import { toast } from '../../components/toast.tsx'
import { changeGroup } from '../../data/group-actions.ts'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { canSomewhere, personName, refusal } from '../../data/permissions.ts'
import { groupQuery, sourceRunsQuery } from '../../data/queries.ts'
import { useKeys } from '../../keys.ts'
import { timeMode } from '../../preferences.ts'
import { Page } from '../../shell/page.tsx'
import { useStore } from '../../store.ts'
import { apiText } from '../../words/equivalents.ts'
import { groupSentence } from '../../words/group-sentence.ts'
import { countText } from '../../words/numbers.ts'
import { groupOfRun } from '../../words/runs.ts'
import { suggestionFor } from '../../words/suggestion.ts'
import { NotFound } from '../not-found.tsx'
import { Activity } from './activity.tsx'
import { GroupChart } from './group-chart.tsx'
import { type GroupDialog, GroupDialogs } from './group-dialogs.tsx'
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
      <Head group={group} etag={etag} onDialog={setDialog} />
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

interface HeadProps {
  readonly group: Group
  readonly etag: string
  readonly onDialog: (dialog: GroupDialog | 'split') => void
}

function Head({ group, etag, onDialog }: HeadProps) {
  const me = useMe()
  const now = useNow()
  const mode = useStore(timeMode)
  const state = group.regressed && group.state === 'open' ? 'regressed' : group.state
  return (
    <section className="page-head group-head">
      <div>
        <div className="page-meta">
          <Pill state={state} />
          <FailureClass name={group.class} />
          {group.code === undefined ? null : (
            <code>
              <Peer text={group.code} most={80} />
            </code>
          )}
          <span className="row">
            <Icon name="sources" className="faint" />
            <Peer text={group.source} most={80} />
          </span>
          {group.owner === undefined ? null : (
            <span className="row">
              <Icon name="user" className="faint" />
              {personName(group.owner, me)}
            </span>
          )}
        </div>
        <h1>
          <Peer text={group.title} />
        </h1>
        <p className="group-sentence">
          {group.handler === undefined ? null : (
            <>
              <b>
                <Peer text={group.handler} most={80} />
              </b>{' '}
              on{' '}
              <b>
                <Peer text={group.source} most={80} />
              </b>{' '}
              failed.{' '}
            </>
          )}
          {groupSentence(group, now, mode)}
        </p>
      </div>
      <HeadActions group={group} etag={etag} onDialog={onDialog} />
    </section>
  )
}

function HeadActions({ group, etag, onDialog }: HeadProps) {
  const me = useMe()
  const navigate = useNavigate()
  const { source, openCount, id } = group
  const noTriage = refusal(me, 'triage', source)
  const replay = () => void navigate({ to: '/replays/new', search: { group: id } })
  const assign = () => {
    const owner = group.owner === me.person ? null : me.person
    changeGroup(id, { owner }, { etag, key: crypto.randomUUID() }).then(
      () => toast({ text: owner === null ? 'Owner removed' : 'Assigned to you', tone: 'good' }),
      (error: unknown) => toast({ text: problemOf(error).detail, tone: 'bad' }),
    )
  }
  const canTriage = canSomewhere(me, 'triage')
  const canDiscard = canSomewhere(me, 'discard')
  const triageItems = [
    {
      label: group.owner === me.person ? 'Remove me as owner' : 'Assign to me',
      keys: 'a',
      disabledReason: noTriage,
      onChoose: assign,
    },
    ...(group.state === 'open'
      ? [
          {
            label: 'Mute…',
            keys: 'm',
            disabledReason: noTriage,
            onChoose: () => onDialog('mute'),
          },
          {
            label: 'Resolve…',
            disabledReason: noTriage,
            onChoose: () => onDialog('resolve'),
          },
        ]
      : [
          {
            label: 'Reopen…',
            disabledReason: noTriage,
            onChoose: () => onDialog('reopen'),
          },
        ]),
  ]
  useKeys({
    ...(refusal(me, 'replay', source) === undefined ? { r: replay } : {}),
    ...(refusal(me, 'discard', source) === undefined ? { d: () => onDialog('discard') } : {}),
    ...(noTriage === undefined ? { a: assign, m: () => onDialog('mute') } : {}),
  })
  return (
    <div className="group-actions">
      {openCount > 0 && canSomewhere(me, 'replay') ? (
        refusal(me, 'replay', source) === undefined ? (
          <Link
            to="/replays/new"
            search={{ group: id }}
            {...lookOf(
              group.class === 'schema' || group.class === 'business' ? {} : { kind: 'primary' },
            )}
          >
            {group.class === 'schema' ? 'Repair' : 'Replay'} {countText(openCount)}…
          </Link>
        ) : (
          <Button disabledReason={refusal(me, 'replay', source)}>
            Replay {countText(openCount)}…
          </Button>
        )
      ) : null}
      {openCount > 0 && canDiscard ? (
        <Button disabledReason={refusal(me, 'discard', source)} onClick={() => onDialog('discard')}>
          Discard…
        </Button>
      ) : null}
      {canTriage || canDiscard ? (
        <Menu
          isIcon
          label="More actions"
          items={[
            ...(canTriage ? triageItems : []),
            ...(canDiscard
              ? [
                  {
                    label: 'Split…',
                    disabledReason: refusal(me, 'discard', source),
                    onChoose: () => onDialog('split'),
                  },
                ]
              : []),
          ]}
        >
          <Icon name="more" />
        </Menu>
      ) : null}
    </div>
  )
}
