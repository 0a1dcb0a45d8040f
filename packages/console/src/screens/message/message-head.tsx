import type { DeadLetterDetail } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Button, lookOf } from '../../components/button.tsx'
import { FailureClass } from '../../components/failure-class.tsx'
import { Icon } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import { Pill, Tag } from '../../components/status.tsx'
import { useMe } from '../../data/me.ts'
import { newestQuery } from '../../data/messages.ts'
import { can, canSomewhere, refusal } from '../../data/permissions.ts'
import { useKeys } from '../../keys.ts'
import { groupPath, messagePath } from '../../paths.ts'
import { messageSentence } from '../../words/message-sentence.ts'
import { OutcomeDialog } from './outcome-dialog.tsx'
import { type MessageDialog, SettleDialog } from './settle-dialog.tsx'

export interface MessageHeadProps {
  readonly message: DeadLetterDetail
  readonly from: string | undefined
}

/** The status, the sentence and the actions of a message. */
export const MessageHead = ({ message, from }: MessageHeadProps) => (
  <section className="page-head message-head">
    <div>
      <div className="page-meta">
        <Pill state={message.status} />
        {message.quarantined ? <Tag text="quarantined" tone="warn" /> : null}
        <FailureClass name={message.class} />
        <span className="row">
          <Icon name="sources" className="faint" />
          <Peer text={message.source} most={80} />
        </span>
        {message.handler === undefined ? null : <Peer text={message.handler} most={80} />}
        {message.type === undefined ? null : (
          <code>
            <Peer text={message.type} most={80} />
          </code>
        )}
        <Link to={groupPath(message.group)} className="link">
          in group {message.group.slice(-8)}
        </Link>
      </div>
      <h1>
        <b>
          <Peer text={message.key} most={200} />
        </b>{' '}
        <Peer text={messageSentence(message)} most={500} />
      </h1>
    </div>
    <Actions message={message} from={from} />
  </section>
)

function Actions({ message, from }: MessageHeadProps) {
  const me = useMe()
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<MessageDialog | 'resolved' | 'open'>()
  const { id, source, status } = message
  const replay = () => void navigate({ to: '/replays/new', search: { ids: id } })
  const isOpen = status === 'open'
  const needsOutcome = status === 'unknown' || status === 'not_returned'
  const noDiscard = refusal(me, 'discard', source)
  const noReplay = refusal(me, 'replay', source)
  const canEdit =
    can(me, 'edit', source) && can(me, 'replay', source) && can(me, 'view_unmasked', source)
  const isSchema = message.class === 'schema'
  useKeys({
    ...(isOpen && noReplay === undefined ? { r: replay } : {}),
    ...(isOpen && noDiscard === undefined ? { d: () => setDialog('discard') } : {}),
  })
  return (
    <div className="message-actions">
      {isOpen && canEdit && isSchema ? <EditLink id={id} isPrimary /> : null}
      {isOpen && canSomewhere(me, 'replay') ? (
        <Button
          {...(isSchema ? {} : { kind: 'primary' })}
          disabledReason={noReplay}
          onClick={replay}
        >
          Replay…
        </Button>
      ) : null}
      {isOpen && canEdit && !isSchema ? <EditLink id={id} /> : null}
      {needsOutcome && canSomewhere(me, 'replay') ? (
        <>
          <Button disabledReason={noReplay} onClick={() => setDialog('resolved')}>
            Took effect…
          </Button>
          <Button disabledReason={noReplay} onClick={() => setDialog('open')}>
            Reopen…
          </Button>
        </>
      ) : null}
      {isOpen && canSomewhere(me, 'discard') ? (
        <Button disabledReason={noDiscard} onClick={() => setDialog('discard')}>
          Discard…
        </Button>
      ) : null}
      {status === 'discarded' && canSomewhere(me, 'discard') ? (
        <Button disabledReason={noDiscard} onClick={() => setDialog('restore')}>
          Restore…
        </Button>
      ) : null}
      {from === undefined ? null : <Neighbours id={id} filter={from} />}
      {dialog === 'discard' || dialog === 'restore' ? (
        <SettleDialog kind={dialog} messages={[message]} onClose={() => setDialog(undefined)} />
      ) : null}
      {dialog === 'resolved' || dialog === 'open' ? (
        <OutcomeDialog as={dialog} ids={[id]} onClose={() => setDialog(undefined)} />
      ) : null}
    </div>
  )
}

const EditLink = ({ id, isPrimary }: { readonly id: string; readonly isPrimary?: true }) => (
  <Link
    to="/messages/$id/edit"
    params={{ id }}
    {...lookOf(isPrimary === true ? { kind: 'primary' } : {})}
  >
    Edit and replay…
  </Link>
)

/** The previous and the next message of the list that the reader came from. */
function Neighbours({ id, filter }: { readonly id: string; readonly filter: string }) {
  const navigate = useNavigate()
  const rows = useQuery({ ...newestQuery(filter), staleTime: 60_000 }).data?.rows ?? []
  const at = rows.findIndex((row) => row.id === id)
  const previous = at > 0 ? rows[at - 1]?.id : undefined
  const next = at >= 0 ? rows[at + 1]?.id : undefined
  const open = (other: string | undefined) => {
    if (other !== undefined)
      void navigate({ to: messagePath(other), search: { from: filter }, replace: true })
  }
  useKeys({ j: () => open(next), k: () => open(previous) })
  if (at < 0) return null
  return (
    <span className="message-neighbours">
      <Button
        isIcon
        aria-label="Previous message"
        disabledReason={
          previous === undefined ? 'This is the first message of the list.' : undefined
        }
        onClick={() => open(previous)}
      >
        <Icon name="left" />
      </Button>
      <Button
        isIcon
        aria-label="Next message"
        disabledReason={
          next === undefined ? 'This is the last loaded message of the list.' : undefined
        }
        onClick={() => open(next)}
      >
        <Icon name="right" />
      </Button>
    </span>
  )
}
