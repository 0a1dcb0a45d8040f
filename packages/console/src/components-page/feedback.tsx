import { ApiError } from '@redrive/api'
import { type ReactNode, useState } from 'react'
import { Button } from '../components/button.tsx'
import { Confirm } from '../components/dialog.tsx'
import { Empty, LoadError, Skeleton } from '../components/feedback.tsx'
import { Icon } from '../components/icon.tsx'
import { KeysHelp } from '../components/keys-help.tsx'
import { Note } from '../components/note.tsx'
import { Palette } from '../components/palette.tsx'
import { toast, ToastLine, Toasts } from '../components/toast.tsx'
import { useKeys } from '../keys.ts'
import { Sample } from './sample.tsx'

const NOTHING = () => undefined

const UNAVAILABLE = new ApiError({
  type: 'urn:redrive:problem:unavailable',
  title: 'Service unavailable',
  status: 503,
  code: 'unavailable',
  detail: 'Cannot connect to the database.',
  requestId: '5f20c1aa-0000-4000-8000-000000000000',
})

export const FeedbackSection = () => (
  <>
    <Sample title="Loading" files="feedback">
      <Skeleton isImmediate />
    </Sample>
    <Sample title="No results" files="feedback">
      <Empty title="No group matches." action={<Button size="small">Clear the filter</Button>}>
        The filter is <code>class:schema owner:chen</code>.
      </Empty>
      <Empty title="No replays yet." />
    </Sample>
    <Sample title="Errors" files="feedback">
      <LoadError what="groups" error={UNAVAILABLE} onRetry={NOTHING} />
      <LoadError what="sources" error={new TypeError('fetch failed')} />
    </Sample>
    <Sample title="Notes" files="note" isWide>
      <Note
        tone="warn"
        shape="warn"
        isBar
        role="status"
        action={<Button size="small">Retry now</Button>}
      >
        <b>No connection to the server for 40 s.</b> Data is from 03:04:12. Next retry in 8 s.
      </Note>
      <Note tone="bad" shape="fail">
        Replays are frozen.
      </Note>
      <Note tone="run" shape="run">
        12 new groups since 03:04:11.
      </Note>
      <Note tone="idle" shape="wait">
        Awaiting approval.
      </Note>
    </Sample>
    <Sample title="Toasts" files="toast">
      <ToastLine
        text="Discarded 573 messages"
        tone="good"
        action={{ label: 'Undo', onChoose: NOTHING }}
        onClose={NOTHING}
      />
      <ToastLine text="The group changed after you opened it." tone="warn" onClose={NOTHING} />
      <ToastLine text="Saving the comment…" tone="run" onClose={NOTHING} />
      <ToastLine text="Not saved. The server did not respond." tone="bad" onClose={NOTHING} />
      <Button size="small" onClick={() => toast({ text: 'Link copied', tone: 'good' })}>
        Show a toast
      </Button>
      <Toasts />
    </Sample>
    <DialogSamples />
  </>
)

const OPENERS = ['Discard dialog', 'Resolve dialog', 'Keys dialog', 'Palette'] as const

function DialogSamples() {
  const [open, setOpen] = useState<(typeof OPENERS)[number]>()
  const close = () => setOpen(undefined)
  useKeys({ '?': () => setOpen('Keys dialog') })
  return (
    <Sample title="Dialogs" files="dialog palette">
      <div className="components-row">
        {OPENERS.map((name) => (
          <Button key={name} onClick={() => setOpen(name)}>
            {name}
          </Button>
        ))}
      </div>
      {open === undefined ? null : dialogs(close)[open]}
    </Sample>
  )
}

const dialogs = (close: () => void): Readonly<Record<(typeof OPENERS)[number], ReactNode>> => ({
  'Discard dialog': (
    <Confirm
      title="Discard 573 messages"
      cancelLabel="Keep"
      confirmLabel="Discard 573 messages"
      isDanger
      hasReason
      count={573}
      cli="redrive discard group:41be"
      onConfirm={close}
      onClose={close}
    >
      <p>Discarded messages are not replayed. You can restore them.</p>
    </Confirm>
  ),
  'Resolve dialog': (
    <Confirm
      title="Resolve the group"
      cancelLabel="Keep open"
      confirmLabel="Resolve"
      cli="redrive groups change 41be --state resolved"
      problem="Changed by another user after you opened it."
      onConfirm={close}
      onClose={close}
    >
      <p>A new failure opens the group again.</p>
    </Confirm>
  ),
  'Keys dialog': <KeysHelp onClose={close} />,
  Palette: <PaletteSample onClose={close} />,
})

function PaletteSample({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const options = ['connect ECONNREFUSED', 'invoice <n> is already paid', 'payments'].map(
    (text) => ({
      id: text,
      section: text === 'payments' ? 'Sources' : 'Groups',
      icon: <Icon name="groups" />,
      text,
      note: '12 open',
      onChoose: NOTHING,
    }),
  )
  return (
    <Palette
      typed={typed}
      onType={setTyped}
      options={options.filter(({ text }) => text.includes(typed))}
      onClose={onClose}
    />
  )
}
