import type { DeadLetterDetail } from '@redrive/api'
import { useEffect, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Empty } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { Segments } from '../../components/tabs.tsx'
import { useMe } from '../../data/me.ts'
import type { Payload } from '../../data/messages.ts'
import { can } from '../../data/permissions.ts'
import { bytesOf } from '../../words/bytes.ts'
import { jsonLines, maskedCount, parseExact } from '../../words/json-lines.ts'
import { BODY_VIEWS, type BodyView } from '../../address-values.ts'
import { bytesText, countText } from '../../words/numbers.ts'
import { HexView, JsonView, RawView } from './payload-view.tsx'
import { RevealDialog } from './reveal-dialog.tsx'

/** 5 min: long enough to read, and short enough for a screen that is left open. */
const REVEALED_MS = 300_000

export interface PayloadCardProps {
  readonly message: DeadLetterDetail
  readonly view: BodyView
  readonly onView: (view: BodyView) => void
}

/** The body: masked, or complete after the user gave a reason. */
export function PayloadCard({ message, view, onView }: PayloadCardProps) {
  const me = useMe()
  const [payload, setPayload] = useState<Payload>()
  const [isAsking, setAsking] = useState(false)
  useEffect(() => {
    if (payload === undefined) return undefined
    const timer = setTimeout(() => setPayload(undefined), REVEALED_MS)
    return () => clearTimeout(timer)
  }, [payload])
  const { body, isTombstone, payloadBytes, contentType } = message
  const canReveal = can(me, 'view_unmasked', message.source) && !isTombstone
  const masked =
    payload === undefined && body.preview !== undefined ? maskedCount(jsonLines(body.preview)) : 0
  return (
    <Card>
      <header className="payload-head">
        {payload === undefined ? (
          <h2>Body</h2>
        ) : (
          <Segments
            label="View of the body"
            options={BODY_VIEWS.map((name) => ({ name, label: NAMES[name] }))}
            current={view}
            onChange={onView}
          />
        )}
        <span className="quiet small">
          {bytesText(payloadBytes)}
          {contentType === undefined ? null : (
            <>
              , <Peer text={contentType} most={80} />
            </>
          )}
        </span>
        <span className="grow" />
        {masked > 0 ? (
          <span className="quiet small">
            {countText(masked)} {masked === 1 ? 'value' : 'values'} masked
          </span>
        ) : null}
        {payload !== undefined ? (
          <Button size="small" onClick={() => setPayload(undefined)}>
            Hide
          </Button>
        ) : canReveal ? (
          <Button size="small" onClick={() => setAsking(true)}>
            <Icon name="eye" />
            Reveal…
          </Button>
        ) : null}
      </header>
      {payload === undefined ? (
        <MaskedBody message={message} canReveal={canReveal} />
      ) : (
        <>
          <Note tone="warn" shape="warn" isBar>
            The whole body is shown. It is hidden again after 5 minutes or when you leave the page.
          </Note>
          <Revealed payload={payload} view={view} />
        </>
      )}
      {isAsking ? (
        <RevealDialog
          message={message}
          hiddenWhen="The page hides it again after 5 minutes."
          onClose={() => setAsking(false)}
          onRevealed={(found) => {
            setPayload(found)
            setAsking(false)
          }}
        />
      ) : null}
    </Card>
  )
}

const NAMES: Readonly<Record<BodyView, string>> = { pretty: 'Pretty', raw: 'Raw', hex: 'Hex' }

interface MaskedBodyProps {
  readonly message: DeadLetterDetail
  readonly canReveal: boolean
}

function MaskedBody({ message: { body, isTombstone, source }, canReveal }: MaskedBodyProps) {
  const reveal = canReveal ? ' Reveal… shows the original.' : ''
  if (isTombstone)
    return <Empty title="No body.">This record is a tombstone, which deletes its key.</Empty>
  if (body.isHidden)
    return (
      <Empty title="The body is hidden.">Permission view_payload is required on {source}.</Empty>
    )
  if (body.hiddenBy !== undefined)
    return (
      <Empty title="The body is hidden.">
        The mask <code>{body.hiddenBy}</code> found nothing, so its value may be at another place.
        {reveal}
      </Empty>
    )
  if (body.preview === undefined)
    return <Empty title="No preview.">The body is not JSON.{reveal}</Empty>
  return <JsonView lines={jsonLines(body.preview)} />
}

function Revealed({ payload, view }: { readonly payload: Payload; readonly view: BodyView }) {
  const { text, bytes } = payload
  const parsed = text === undefined ? undefined : parseExact(text)
  if (view === 'pretty' && parsed !== undefined) return <JsonView lines={jsonLines(parsed.value)} />
  if (view !== 'hex' && text !== undefined) return <RawView text={text} />
  return <HexView bytes={bytesOf(bytes)} />
}
