import type { Action } from '@redrive/api/enums'
import { useNavigate } from '@tanstack/react-router'
import { Button } from '../../components/button.tsx'
import { idsText } from '../../data/kept.ts'
import { useMe } from '../../data/me.ts'
import type { MessageRow } from '../../data/messages.ts'
import { canSomewhere, refusal } from '../../data/permissions.ts'
import { useKeys } from '../../keys.ts'
import { SelectionBar } from '../../list/list-parts.tsx'
import { countOf, countText } from '../../words/numbers.ts'
import type { MessageDialog } from '../message/settle-dialog.tsx'

/** 1,000 messages: the most that the API accepts as a list of ids. */
const IDS_MAX = 1_000

export interface MessagesBarProps {
  readonly messages: readonly MessageRow[]
  readonly onClear: () => void
  /** Opens the dialog of a discard or restore. It must stay open when the messages leave the list. */
  readonly onSettle: (settling: Settling) => void
}

/** Messages to discard or restore, as they were when the dialog was opened. */
export interface Settling {
  readonly kind: MessageDialog
  readonly messages: readonly MessageRow[]
  readonly onDone: () => void
}

/** Actions on the selected messages. */
export function MessagesBar({ messages, onClear, onSettle }: MessagesBarProps) {
  const me = useMe()
  const navigate = useNavigate()
  const sources = [...new Set(messages.map(({ source }) => source))]
  const refusalOf = (action: Action) =>
    sources.map((source) => refusal(me, action, source)).find((reason) => reason !== undefined)
  const open = messages.filter(({ status }) => status === 'open')
  const discarded = messages.filter(({ status }) => status === 'discarded')
  const discard = () => onSettle({ kind: 'discard', messages: open, onDone: onClear })
  const restore = () => onSettle({ kind: 'restore', messages: discarded, onDone: onClear })
  const none = open.length === 0 ? 'None of these messages is open.' : undefined
  const tooMany =
    messages.length > IDS_MAX
      ? `Select at most ${countText(IDS_MAX)} messages, or use a filter.`
      : undefined
  const several =
    sources.length > 1 ? 'A replay has one source. Select messages of one source.' : undefined
  const noReplay = refusalOf('replay') ?? none ?? several ?? tooMany
  const noDiscard = refusalOf('discard') ?? none ?? tooMany
  const replay = () =>
    void navigate({ to: '/replays/new', search: { ids: idsText(open.map(({ id }) => id)) } })
  useKeys({
    ...(noReplay === undefined ? { r: replay } : {}),
    ...(noDiscard === undefined ? { d: discard } : {}),
  })
  return (
    <SelectionBar label="Selected messages" onClear={onClear}>
      <b>{countOf(messages.length, 'message')} selected</b>
      {canSomewhere(me, 'replay') ? (
        <Button size="small" disabledReason={noReplay} onClick={replay}>
          Replay {countText(open.length)}…
        </Button>
      ) : null}
      {canSomewhere(me, 'discard') ? (
        <Button size="small" disabledReason={noDiscard} onClick={discard}>
          Discard {countText(open.length)}…
        </Button>
      ) : null}
      {canSomewhere(me, 'discard') && discarded.length > 0 ? (
        <Button size="small" disabledReason={refusalOf('discard') ?? tooMany} onClick={restore}>
          Restore {countText(discarded.length)}…
        </Button>
      ) : null}
    </SelectionBar>
  )
}
