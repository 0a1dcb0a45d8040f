import { useEffect, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Peer } from '../../components/peer.tsx'
import { Segments } from '../../components/tabs.tsx'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import {
  readSetAsidePayload,
  type SetAsideMessage,
  type SetAsidePayload,
} from '../../data/sources.ts'
import { bytesOf, hexLines, textOfBytes } from '../../words/bytes.ts'
import { bytesText } from '../../words/numbers.ts'
import { useChange } from '../../dialogs/use-change.ts'

/** 5 min: long enough to read a body. After it, the bytes are hidden again. */
const SHOWN_MS = 300_000
/** 4 kB: 256 lines. The download has all bytes. */
const BYTES_MAX = 4_096
const TEXT_MAX = 20_000

/** Body and headers, after a reason. Without the permission there is only a sentence. */
export function SetAsideBytes({ message }: { readonly message: SetAsideMessage }) {
  const me = useMe()
  const [isAsking, setAsking] = useState(false)
  const [payload, setPayload] = useState<SetAsidePayload>()
  useEffect(() => {
    if (payload === undefined) return
    const timer = setTimeout(() => setPayload(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [payload])
  const isAllowed = can(me, 'view_unmasked', message.source)
  return (
    <>
      {payload === undefined ? (
        <Card title="Bytes">
          <CardBody>
            <div className="set-aside-ask">
              <p className="quiet small">
                {isAllowed
                  ? 'Body and headers are unmasked. The audit log records who shows them, and why.'
                  : `Permission view_unmasked is required on ${message.source}.`}
              </p>
              {isAllowed ? <Button onClick={() => setAsking(true)}>Show bytes…</Button> : null}
            </div>
          </CardBody>
        </Card>
      ) : (
        <Bytes message={message} payload={payload} onHide={() => setPayload(undefined)} />
      )}
      {isAsking ? (
        <ReasonDialog message={message} onShow={setPayload} onClose={() => setAsking(false)} />
      ) : null}
    </>
  )
}

interface ReasonDialogProps {
  readonly message: SetAsideMessage
  readonly onShow: (payload: SetAsidePayload) => void
  readonly onClose: () => void
}

function ReasonDialog({ message, onShow, onClose }: ReasonDialogProps) {
  const { run, isBusy, problem } = useChange(onClose)
  const [reason, setReason] = useState('')
  const given = reason.trim()
  return (
    <Confirm
      title="Show body and headers"
      cancelLabel="Cancel"
      confirmLabel="Show"
      cli={`redrive set-aside show ${message.id} --payload --reason "${given === '' ? '…' : given.replaceAll(/["\\$`]/g, '\\$&')}"`}
      isBusy={isBusy}
      problem={problem}
      disabledReason={given === '' ? 'Enter a reason.' : undefined}
      onConfirm={() =>
        run(async () => {
          onShow(await readSetAsidePayload(message.id, given))
          return 'Shown. The audit log has the reason'
        })
      }
      onClose={onClose}
    >
      <p>Your name, the time and the reason are written to the audit log.</p>
      <label className="field">
        <span>Reason</span>
        <input
          value={reason}
          maxLength={1_000}
          onChange={({ target }) => setReason(target.value)}
        />
      </label>
    </Confirm>
  )
}

interface BytesProps {
  readonly message: SetAsideMessage
  readonly payload: SetAsidePayload
  readonly onHide: () => void
}

const VIEWS = [
  { name: 'body', label: 'Body' },
  { name: 'hex', label: 'Hex' },
  { name: 'headers', label: 'Headers' },
] as const

function Bytes({ message, payload, onHide }: BytesProps) {
  const [view, setView] = useState<(typeof VIEWS)[number]['name']>('body')
  const bytes = bytesOf(payload.bytes)
  const download = () => {
    const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
    const link = Object.assign(document.createElement('a'), { href: url, download: message.id })
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <Card
      title="Bytes"
      note={bytesText(bytes.length)}
      action={<Segments label="View" options={VIEWS} current={view} onChange={setView} />}
      footer={
        <>
          <span className="set-aside-hint">Hidden again after 5 min, or when you leave.</span>
          <Button size="small" onClick={download}>
            Download the body
          </Button>
          <Button size="small" onClick={onHide}>
            Hide
          </Button>
        </>
      }
    >
      {/* A region that scrolls must have the focus, so that a keyboard can scroll it. */}
      <section className="set-aside-bytes" tabIndex={0} aria-label={`Bytes: ${view}`}>
        {view === 'hex' ? (
          <Hex bytes={bytes} />
        ) : view === 'headers' ? (
          <Text text={payload.encodedHeaders ?? 'The headers are not stored.'} />
        ) : (
          <Text text={textOfBytes(bytes) ?? 'The body is not valid UTF-8. Choose Hex.'} />
        )}
      </section>
    </Card>
  )
}

const Text = ({ text }: { readonly text: string }) => (
  <pre>
    <Peer text={text} most={TEXT_MAX} />
  </pre>
)

const Hex = ({ bytes }: { readonly bytes: Uint8Array }) => (
  <pre>
    {hexLines(bytes, BYTES_MAX).map(({ at, hex, text }) => (
      <span key={at}>
        <span className="faint">{at}</span>
        {`  ${hex}  ${text}\n`}
      </span>
    ))}
    {bytes.length > BYTES_MAX ? (
      <span className="faint">…{bytesText(bytes.length - BYTES_MAX)} more</span>
    ) : null}
  </pre>
)
