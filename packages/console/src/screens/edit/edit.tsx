import { useQuery } from '@tanstack/react-query'
import { useBlocker, useNavigate, useParams } from '@tanstack/react-router'
import { useMemo, useRef, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { Command } from '../../components/command.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { messageQuery, type Payload } from '../../data/messages.ts'
import { planReplay } from '../../data/runs.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { messagePath, runPath } from '../../paths.ts'
import { Page } from '../../shell/page.tsx'
import { editedBody, isJson, prettyText } from '../../words/edited-body.ts'
import { RevealDialog } from '../message/reveal-dialog.tsx'
import { NotFound } from '../not-found.tsx'
import '../run/run.css'

/** Changes the body of one message and plans its replay. The original stays as it is. */
export function Edit() {
  const { id } = useParams({ from: '/messages/$id/edit' })
  const navigate = useNavigate()
  const found = useQuery({ ...messageQuery(id), refetchOnWindowFocus: false })
  const [revealed, setRevealed] = useState<{ payload: Payload; etag: string }>()
  const payload = revealed?.payload
  if (found.data === undefined) {
    if (found.error !== null && 'problem' in found.error) return <NotFound />
    return (
      <Page title="Edit and replay" isHeading>
        <Card>
          {found.error === null ? (
            <Skeleton rows={8} />
          ) : (
            <LoadError
              what="the message"
              error={found.error}
              onRetry={() => void found.refetch()}
            />
          )}
        </Card>
      </Page>
    )
  }
  const { message, etag } = found.data
  const crumbs = [
    { label: 'Messages', to: '/messages' },
    { label: id.slice(-8), to: messagePath(id) },
  ]
  return (
    <Page title="Edit and replay" crumbs={crumbs}>
      <section className="page-head run-head">
        <div>
          <h1>
            Edit and replay <Peer text={message.key} most={200} />
          </h1>
          <p className="quiet">
            <Peer text={message.message} most={500} />
          </p>
        </div>
      </section>
      {payload === undefined ? (
        <RevealDialog
          message={message}
          hiddenWhen="The page shows it while you edit it."
          // The version that was read: an edit of another version is refused.
          onRevealed={(read) => setRevealed({ payload: read, etag })}
          onClose={() => void navigate({ to: messagePath(id), replace: true })}
        />
      ) : payload.text === undefined ? (
        <Note tone="warn" shape="warn">
          The body is not text. Use the command line to replace it: <code>redrive edit {id}</code>
        </Note>
      ) : (
        <Editor id={id} etag={revealed?.etag ?? etag} text={payload.text} />
      )}
    </Page>
  )
}

interface EditorProps {
  readonly id: string
  readonly etag: string
  readonly text: string
}

function Editor({ id, etag, text }: EditorProps) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState(() => prettyText(text))
  const wasJson = useMemo(() => isJson(text), [text])
  const [note, setNote] = useState('')
  const { run, isBusy, problem } = useChange(() => undefined)
  const edited = editedBody(text, typed)
  const help =
    edited.kind === 'invalid'
      ? edited.problem
      : 'Headers stay as they are. The replayed message gets a new key that replaces the old one.'
  const isEdited = edited.kind !== 'same' || note !== ''
  // A plan has the text, so the page may be left.
  const isPlanned = useRef(false)
  // Asks before Back, a link, a reload or a close loses what was typed.
  const leaving = useBlocker({
    shouldBlockFn: () => isEdited && !isPlanned.current,
    enableBeforeUnload: () => isEdited && !isPlanned.current,
    withResolver: true,
  })
  const reason =
    edited.kind === 'same'
      ? 'The body has not changed.'
      : edited.kind === 'invalid'
        ? 'Correct the JSON first.'
        : note.trim() === ''
          ? 'Enter a reason for the approver.'
          : isBusy
            ? 'The plan is being made.'
            : undefined
  const plan = () =>
    run(async () => {
      if (edited.kind !== 'changed') return ''
      const body = {
        selection: { ids: [id] },
        change: { edit: edited.base64 },
        note: note.trim(),
        canary: [],
      }
      const planned = await planReplay(body, { key: crypto.randomUUID(), etag })
      isPlanned.current = true
      await navigate({ to: runPath(planned.id), replace: true })
      return 'Planned'
    })
  return (
    <>
      <Card title="Body" note={edited.kind === 'same' ? 'unchanged' : 'changed'}>
        <CardBody>
          <div className="field">
            <CodeField
              label="Body"
              value={typed}
              onChange={setTyped}
              isJson={wasJson}
              isInvalid={edited.kind === 'invalid'}
              description={help}
              isTall
            />
            <small role="status" data-problem={edited.kind === 'invalid' ? '' : undefined}>
              {help}
            </small>
          </div>
        </CardBody>
      </Card>
      <Card title="Reason">
        <CardBody>
          <div className="stack">
            <label className="field">
              <span>Why the body is changed</span>
              <input
                value={note}
                maxLength={2_000}
                onChange={({ target }) => setNote(target.value)}
              />
            </label>
            <Command text={`redrive edit ${id}`} label="Copy the command" />
          </div>
        </CardBody>
      </Card>
      {problem === undefined ? null : (
        <Note tone="bad" shape="fail" role="alert">
          {problem}
        </Note>
      )}
      <footer className="dock">
        <div>
          <b>Nothing is published yet</b>
          <p className="small quiet">The approver sees the new body. The original is kept.</p>
        </div>
        <span className="grow" />
        <Button onClick={() => void navigate({ to: messagePath(id), replace: true })}>Close</Button>
        <Button kind="primary" disabledReason={reason} onClick={plan}>
          Preview
        </Button>
      </footer>
      {leaving.status === 'blocked' ? (
        <LeaveDialog onStay={leaving.reset} onLeave={leaving.proceed} />
      ) : null}
    </>
  )
}

interface LeaveDialogProps {
  readonly onStay: () => void
  readonly onLeave: () => void
}

const LeaveDialog = ({ onStay, onLeave }: LeaveDialogProps) => (
  <Dialog
    title="Leave without a plan"
    onClose={onStay}
    footer={
      <>
        <span className="grow" />
        <Button onClick={onStay} data-first="">
          Keep editing
        </Button>
        <Button kind="danger" onClick={onLeave}>
          Discard the changes
        </Button>
      </>
    }
  >
    <div className="dialog-body">
      <p>Your changes of this body are not in a plan. They are lost when you leave this page.</p>
    </div>
  </Dialog>
)
