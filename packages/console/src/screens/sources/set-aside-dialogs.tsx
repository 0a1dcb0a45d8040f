import { useState } from 'react'
import { Facts } from '../../components/card.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Peer } from '../../components/peer.tsx'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import {
  changeSetAside,
  type SetAsideAction,
  type SetAsideChange,
  type SetAsideMessage,
} from '../../data/sources.ts'
import { quoted } from '../../words/equivalents.ts'
import { bytesText, countOf, countText } from '../../words/numbers.ts'
import { REASON_NAMES } from '../../words/set-aside.ts'
import { useChange } from '../../dialogs/use-change.ts'

interface Words {
  readonly title: (count: string) => string
  readonly effect: string
  readonly cancel: string
  readonly done: string
}

const WORDS: Readonly<Record<SetAsideAction, Words>> = {
  replay: {
    title: (count) => `Request replay of ${count}`,
    effect:
      'Nothing is published yet. Another person must approve the request. Then the message goes to its origin, unchanged.',
    cancel: 'Cancel',
    done: 'Requested the replay of',
  },
  approve: {
    title: (count) => `Approve replay of ${count}`,
    effect: 'The server publishes the message to its origin within seconds. This cannot be undone.',
    cancel: 'Cancel',
    done: 'Approved the replay of',
  },
  discard: {
    title: (count) => `Discard ${count}`,
    effect: 'A discarded message is not replayed. You can reopen it until it expires.',
    cancel: 'Keep',
    done: 'Discarded',
  },
  reopen: {
    title: (count) => `Reopen ${count}`,
    effect: 'A request of a replay is withdrawn, and a discard is undone. Nothing is published.',
    cancel: 'Cancel',
    done: 'Reopened',
  },
}

export interface SetAsideDialogProps {
  readonly action: SetAsideAction
  readonly messages: readonly SetAsideMessage[]
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** The dialog before a change of set-aside messages. */
export function SetAsideDialog({ action, messages, onClose, onDone }: SetAsideDialogProps) {
  const me = useMe()
  const [headers, setHeaders] = useState('')
  const { run, isBusy, problem } = useChange(() => {
    onClose()
    onDone?.()
  })
  const { title, effect, cancel, done } = WORDS[action]
  const count = countOf(messages.length, 'message')
  // A message without some of its headers is a changed message.
  const canEdit = action === 'replay' && messages.every(({ source }) => can(me, 'edit', source))
  const changes =
    action === 'approve'
      ? approvalsOf(messages)
      : [changeOf(messages, canEdit ? namesIn(headers) : [])]
  return (
    <Confirm
      title={title(count)}
      cancelLabel={cancel}
      confirmLabel={title(count)}
      isDanger={action === 'discard'}
      count={messages.length}
      cli={changes.map((one) => commandOf(action, one)).join('\n')}
      isBusy={isBusy}
      problem={problem}
      onConfirm={() =>
        run(async (key) => {
          let changed = 0
          let skipped = 0
          for (const [at, change] of changes.entries()) {
            const result = await changeSetAside(action, change, `${key}-${at}`)
            changed += result.changed
            skipped += result.skipped.length
          }
          const rest = skipped === 0 ? '' : `. ${countText(skipped)} had changed`
          return `${done} ${countOf(changed, 'message')}${rest}`
        })
      }
      onClose={onClose}
    >
      <p>{effect}</p>
      <Subject messages={messages} />
      {canEdit ? (
        <label className="field">
          <span>Leave out these headers (optional)</span>
          <input
            value={headers}
            placeholder="x-stack-trace, x-death"
            onChange={({ target }) => setHeaders(target.value)}
          />
        </label>
      ) : null}
    </Confirm>
  )
}

const changeOf = (
  messages: readonly SetAsideMessage[],
  withoutHeaders: readonly string[],
): SetAsideChange => ({ ids: messages.map(({ id }) => id), withoutHeaders })

/** Returns one approval for each set of headers to leave out: the server approves only what the approver has seen. */
function approvalsOf(messages: readonly SetAsideMessage[]): readonly SetAsideChange[] {
  const byHeaders = Map.groupBy(messages, ({ withoutHeaders }) =>
    JSON.stringify(withoutHeaders.toSorted()),
  )
  return [...byHeaders.values()].map((all) => changeOf(all, all[0]?.withoutHeaders ?? []))
}

function commandOf(action: SetAsideAction, { ids, withoutHeaders = [] }: SetAsideChange): string {
  const flags = withoutHeaders.map((name) => ` --without-header ${quoted(name)}`)
  return `redrive set-aside ${action} ${ids.join(' ')}${flags.join('')}`
}

const namesIn = (text: string): readonly string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

const Subject = ({ messages }: { readonly messages: readonly SetAsideMessage[] }) => {
  const [first] = messages
  if (first === undefined) return null
  const omitted = [...new Set(messages.flatMap(({ withoutHeaders }) => withoutHeaders))]
  const bytes = messages.reduce((sum, { payloadBytes }) => sum + payloadBytes, 0)
  return (
    <Facts
      facts={[
        {
          name: 'Set aside',
          value: [...new Set(messages.map(({ reason }) => REASON_NAMES[reason]))].join(', '),
        },
        { name: 'Source', value: [...new Set(messages.map(({ source }) => source))].join(', ') },
        {
          name: 'Origin',
          value: <Peer text={[...new Set(messages.map(({ origin }) => origin))].join(', ')} />,
        },
        { name: 'Size', value: bytesText(bytes) },
        {
          name: 'Without headers',
          value: omitted.length === 0 ? undefined : <Peer text={omitted.join(', ')} />,
        },
      ]}
    />
  )
}
