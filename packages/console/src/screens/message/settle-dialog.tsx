import { Facts } from '../../components/card.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Peer } from '../../components/peer.tsx'
import { commentGroup } from '../../data/group-actions.ts'
import { useMe } from '../../data/me.ts'
import { commentMessage, type MessageRow, settleMessages } from '../../data/messages.ts'
import { can } from '../../data/permissions.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { countOf, countText } from '../../words/numbers.ts'

export type MessageDialog = 'discard' | 'restore'

const WORDS = {
  discard: {
    title: 'Discard',
    done: 'Discarded',
    effect: 'Discarded messages are not replayed. You can restore them until they expire.',
    cancel: 'Keep',
  },
  restore: {
    title: 'Restore',
    done: 'Restored',
    effect: 'Restored messages are open again. They can be replayed.',
    cancel: 'Cancel',
  },
} as const

export interface SettleDialogProps {
  readonly kind: MessageDialog
  readonly messages: readonly Pick<MessageRow, 'id' | 'group' | 'key' | 'source'>[]
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** The dialog before messages are discarded or restored. */
export function SettleDialog({ kind, messages, onClose, onDone }: SettleDialogProps) {
  const me = useMe()
  const { title, done, effect, cancel } = WORDS[kind]
  const { run, isBusy, problem } = useChange(() => {
    onClose()
    onDone?.()
  })
  const count = countOf(messages.length, 'message')
  const ids = messages.map(({ id }) => id)
  const [first] = messages
  // The reason becomes a comment.
  const canComment = messages.every(({ source }) => can(me, 'triage', source))
  const confirm = (reason: string) =>
    run(async (key) => {
      const changed = await settleMessages(kind, { ids }, key)
      if (reason !== '') await comment(messages, `${done} ${changed}: ${reason}`, key)
      return `${done} ${countOf(changed, 'message')}`
    })
  return (
    <Confirm
      title={`${title} ${count}`}
      cancelLabel={cancel}
      confirmLabel={`${title} ${count}`}
      isDanger={kind === 'discard'}
      hasReason={canComment}
      count={messages.length}
      cli={`redrive ${kind} --id ${ids.join(' ')}`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{effect}</p>
      {first === undefined ? null : (
        <Facts
          facts={[
            {
              name: messages.length === 1 ? 'Key' : 'Keys',
              value: (
                <>
                  <Peer text={first.key} most={200} />
                  {messages.length === 1 ? null : ` and ${countText(messages.length - 1)} more`}
                </>
              ),
            },
            {
              name: 'Source',
              value: [...new Set(messages.map(({ source }) => source))].join(', '),
            },
          ]}
        />
      )}
    </Confirm>
  )
}

/** Writes the reason where readers look for it: at the message, or at the groups of several messages. */
async function comment(
  messages: SettleDialogProps['messages'],
  text: string,
  key: string,
): Promise<void> {
  const [first] = messages
  if (first !== undefined && messages.length === 1)
    return commentMessage(first.id, text, `${key}-c`)
  for (const group of new Set(messages.map((one) => one.group))) {
    await commentGroup(group, text, `${key}-${group}`)
  }
}
