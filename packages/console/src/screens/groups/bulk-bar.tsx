import type { Group } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { toast } from '../../components/toast.tsx'
import { changeGroup } from '../../data/group-actions.ts'
import { useMe } from '../../data/me.ts'
import { canSomewhere, refusal } from '../../data/permissions.ts'
import { useKeys } from '../../keys.ts'
import { SelectionBar } from '../../list/list-parts.tsx'
import { countOf, countText } from '../../words/numbers.ts'
import { type GroupDialog, GroupDialogs } from '../group/group-dialogs.tsx'
import { MergeDialog } from '../group/regroup-dialogs.tsx'
import '../../list/list.css'

export interface BulkBarProps {
  readonly groups: readonly Group[]
  readonly onClear: () => void
}

/** Actions on the selected groups. Each button has the number of messages that it concerns. */
export function BulkBar({ groups, onClear }: BulkBarProps) {
  const me = useMe()
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<GroupDialog | 'merge'>()
  const open = groups.reduce((sum, { openCount }) => sum + openCount, 0)
  const sources = [...new Set(groups.map(({ source }) => source))]
  const refusalOf = (action: Action) =>
    sources.map((source) => refusal(me, action, source)).find((reason) => reason !== undefined)
  const none = open === 0 ? 'No message of these groups is open.' : undefined
  const several =
    sources.length > 1 ? 'A replay has one source. Select groups of one source.' : undefined
  const noReplay = refusalOf('replay') ?? none ?? several
  const noDiscard = refusalOf('discard') ?? none
  const noTriage = refusalOf('triage')
  const noMerge =
    refusalOf('discard') ??
    (sources.length > 1 ? 'Select groups of one source. Only these can be merged.' : undefined)
  const close = () => setDialog(undefined)
  const replay = () => {
    const q = groups.map(({ id }) => `group:${id}`).join(' ')
    void navigate({ to: '/replays/new', search: { q } })
  }
  const assign = () => void assignAll(groups, me.person)
  useKeys({
    ...(noReplay === undefined ? { r: replay } : {}),
    ...(noDiscard === undefined ? { d: () => setDialog('discard') } : {}),
    ...(noTriage === undefined ? { a: assign, m: () => setDialog('mute') } : {}),
  })
  return (
    <SelectionBar label="Selected groups" onClear={onClear}>
      <b>{countOf(groups.length, 'group')} selected</b>
      <span className="quiet">{countOf(open, 'open message')}</span>
      {canSomewhere(me, 'replay') ? (
        <Button size="small" disabledReason={noReplay} onClick={replay}>
          Replay {countText(open)}…
        </Button>
      ) : null}
      {canSomewhere(me, 'triage') ? (
        <>
          <Button size="small" disabledReason={noTriage} onClick={assign}>
            Assign to me
          </Button>
          <Button size="small" disabledReason={noTriage} onClick={() => setDialog('mute')}>
            Mute…
          </Button>
          <Button size="small" disabledReason={noTriage} onClick={() => setDialog('resolve')}>
            Resolve…
          </Button>
        </>
      ) : null}
      {canSomewhere(me, 'discard') ? (
        <Button size="small" disabledReason={noDiscard} onClick={() => setDialog('discard')}>
          Discard {countText(open)}…
        </Button>
      ) : null}
      {groups.length > 1 && canSomewhere(me, 'discard') ? (
        <Button size="small" disabledReason={noMerge} onClick={() => setDialog('merge')}>
          Merge {countText(groups.length)}…
        </Button>
      ) : null}
      {dialog === 'merge' ? (
        <MergeDialog groups={groups} onClose={close} onDone={onClear} />
      ) : dialog === undefined ? null : (
        <GroupDialogs kind={dialog} groups={groups} onClose={close} onDone={onClear} />
      )}
    </SelectionBar>
  )
}

async function assignAll(groups: readonly Group[], person: string): Promise<void> {
  try {
    for (const { id } of groups) {
      await changeGroup(id, { owner: person }, { key: crypto.randomUUID() })
    }
    toast({ text: `Assigned ${countOf(groups.length, 'group')} to you`, tone: 'good' })
  } catch (error) {
    toast({ text: problemOf(error).detail, tone: 'bad' })
  }
}
