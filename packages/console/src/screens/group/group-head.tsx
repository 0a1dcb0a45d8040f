import type { Group, Run } from '@redrive/api'
import { Link, useNavigate } from '@tanstack/react-router'
import { useNow } from '../../clock.ts'
import { Button, lookOf } from '../../components/button.tsx'
import { FailureClass } from '../../components/failure-class.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Menu } from '../../components/menu.tsx'
import { Peer } from '../../components/peer.tsx'
import { Pill } from '../../components/status.tsx'
import { toast } from '../../components/toast.tsx'
import { changeGroup } from '../../data/group-actions.ts'
import { useMe } from '../../data/me.ts'
import { canSomewhere, personName, refusal } from '../../data/permissions.ts'
import { useKeys } from '../../keys.ts'
import { runPath } from '../../paths.ts'
import { timeMode } from '../../preferences.ts'
import { useStore } from '../../store.ts'
import { groupSentence } from '../../words/group-sentence.ts'
import { countText } from '../../words/numbers.ts'
import type { GroupDialog } from './group-dialogs.tsx'

export interface GroupHeadProps {
  readonly group: Group
  readonly etag: string
  /** A running, paused or planned run of the group. */
  readonly run: Run | undefined
  readonly onDialog: (dialog: GroupDialog | 'split') => void
}

/** The name of the group as a sentence, and its actions. */
export function GroupHead({ group, etag, run, onDialog }: GroupHeadProps) {
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
      <HeadActions group={group} etag={etag} run={run} onDialog={onDialog} />
    </section>
  )
}

function HeadActions({ group, etag, run, onDialog }: GroupHeadProps) {
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
      {run === undefined ? null : (
        <Link to={runPath(run.id)} {...lookOf({ kind: 'primary' })}>
          {run.state === 'planned' ? 'Open plan' : 'Watch run'}
        </Link>
      )}
      {openCount > 0 && canSomewhere(me, 'replay') ? (
        refusal(me, 'replay', source) === undefined ? (
          <Link
            to="/replays/new"
            search={{ group: id }}
            {...lookOf(
              run !== undefined || group.class === 'schema' || group.class === 'business'
                ? {}
                : { kind: 'primary' },
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
