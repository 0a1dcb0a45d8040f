import { ApiError } from '@redrive/api'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { Pill } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { canSomewhere, personName } from '../../data/permissions.ts'
import {
  type SetAsideAction,
  type SetAsideMessage,
  setAsideMessageQuery,
} from '../../data/sources.ts'
import { useKeys } from '../../keys.ts'
import { apiText } from '../../words/equivalents.ts'
import { bytesText, countText } from '../../words/numbers.ts'
import { REASON_NAMES } from '../../words/set-aside.ts'
import { actionsOf, isOwnRequest } from './set-aside-actions.ts'
import { SetAsideBytes } from './set-aside-bytes.tsx'
import { SetAsideDialog } from './set-aside-dialogs.tsx'

/** One message: why it was set aside, and what to do with it. */
export function SetAsideDetail({ id }: { readonly id: string }) {
  const found = useLiveQuery(setAsideMessageQuery(id), 5_000)
  const isMissing =
    found.error instanceof ApiError && ['not_found', 'invalid'].includes(found.error.code)
  if (isMissing)
    return (
      <Card>
        <Empty title="Not found, or no permission to view it." />
      </Card>
    )
  if (found.data === undefined)
    return (
      <Card>
        {found.error === null ? (
          <Skeleton rows={5} />
        ) : (
          <LoadError what="the message" error={found.error} onRetry={() => void found.refetch()} />
        )}
      </Card>
    )
  return <Loaded message={found.data} />
}

function Loaded({ message }: { readonly message: SetAsideMessage }) {
  const me = useMe()
  const [action, setAction] = useState<SetAsideAction>()
  const actions = actionsOf(message, me).filter(({ needs }) => canSomewhere(me, needs))
  const keyed = (key: string, wanted: SetAsideAction) =>
    actions.some((one) => one.action === wanted && one.refusal === undefined)
      ? { [key]: () => setAction(wanted) }
      : {}
  useKeys({ ...keyed('r', 'replay'), ...keyed('d', 'discard') })
  return (
    <div className="stack">
      <Card
        title={REASON_NAMES[message.reason]}
        action={<Pill state={message.status === 'open' ? 'set_aside' : message.status} />}
        {...(actions.length === 0
          ? {}
          : {
              footer: (
                <>
                  <span className="set-aside-hint">
                    {hintOf(message, isOwnRequest(message, me))}
                  </span>
                  {actions.toReversed().map((one, at) => (
                    <Button
                      key={one.label}
                      // The last button is the safe one: nothing is published before an approval.
                      {...(at === actions.length - 1 && one.action === 'replay'
                        ? { kind: 'primary' as const }
                        : {})}
                      disabledReason={one.refusal}
                      onClick={() => setAction(one.action)}
                    >
                      {one.label}
                    </Button>
                  ))}
                </>
              ),
            })}
      >
        <CardBody>
          <div className="stack">
            <Note tone="warn" shape="warn">
              <Peer text={message.explanation} />
            </Note>
            {message.replayError === undefined ? null : (
              <Note tone="bad" shape="fail">
                <b>The last replay failed.</b> <Peer text={message.replayError} />
              </Note>
            )}
            <Details message={message} />
          </div>
        </CardBody>
      </Card>
      <SetAsideBytes message={message} />
      <Card title="Command line">
        <CardBody>
          <Equivalents
            cli={`redrive set-aside show ${message.id}`}
            api={apiText(`GET /api/v1/set-aside/${message.id}`)}
          />
        </CardBody>
      </Card>
      {action === undefined ? null : (
        <SetAsideDialog action={action} messages={[message]} onClose={() => setAction(undefined)} />
      )}
    </div>
  )
}

function hintOf({ status, isComplete }: SetAsideMessage, isOwn: boolean): string {
  if (!isComplete) return 'Only the start of the body is stored, so it cannot be replayed.'
  if (isOwn) return 'You requested this replay. Another person approves it.'
  return status === 'open' ? 'A replay needs the approval of another person.' : ''
}

function Details({ message }: { readonly message: SetAsideMessage }) {
  const me = useMe()
  const { requestedBy, withoutHeaders, settledAt, type, contentType } = message
  return (
    <Facts
      facts={[
        { name: 'Source', value: message.source },
        { name: 'Received', value: <Time at={message.at} isAgo /> },
        { name: 'Origin', value: <PeerCode text={message.origin} /> },
        { name: 'Key', value: <PeerCode text={message.key} /> },
        { name: 'Message id', value: <PeerCode text={message.messageId} /> },
        { name: 'Type', value: type === undefined ? undefined : <PeerCode text={type} /> },
        {
          name: 'Content type',
          value: contentType === undefined ? undefined : <PeerCode text={contentType} />,
        },
        {
          name: 'Body',
          value: sizeText(message.payloadBytes),
        },
        { name: 'SHA-256', value: <code>{message.sha256}</code> },
        {
          name: 'Requested by',
          value: requestedBy === undefined ? undefined : personName(requestedBy, me),
        },
        {
          name: 'Left out',
          value:
            withoutHeaders.length === 0 ? undefined : (
              <PeerCode text={`headers ${withoutHeaders.join(', ')}`} />
            ),
        },
        {
          name: 'Settled',
          value: settledAt === undefined ? undefined : <Time at={settledAt} isAgo />,
        },
      ]}
    />
  )
}

const PeerCode = ({ text }: { readonly text: string }) => (
  <code>
    <Peer text={text} most={500} />
  </code>
)

/** Returns the size. A rounded one is followed by the exact number. */
const sizeText = (bytes: number): string =>
  bytes < 1_000 ? bytesText(bytes) : `${bytesText(bytes)} (${countText(bytes)} bytes)`
