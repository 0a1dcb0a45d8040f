import { useState } from 'react'
import { Facts } from '../../components/card.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Peer } from '../../components/peer.tsx'
import { commentGroup } from '../../data/group-actions.ts'
import { useMe } from '../../data/me.ts'
import {
  commentMessage,
  type MessageRow,
  refreshMessages,
  settleMessages,
} from '../../data/messages.ts'
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
  const [progress, setProgress] = useState<Progress>({ commented: [] })
  const isSettled = progress.changed !== undefined
  const finish = () => {
    onClose()
    void refreshMessages()
    onDone?.()
  }
  const { run, isBusy, problem } = useChange(finish)
  const count = countOf(messages.length, 'message')
  const ids = messages.map(({ id }) => id)
  const [first] = messages
  // The reason becomes a comment.
  const canComment = messages.every(({ source }) => can(me, 'triage', source))
  const confirm = (reason: string) =>
    run(async (key) => {
      let { changed } = progress
      if (changed === undefined) {
        changed = await settleMessages(kind, { ids }, key)
        setProgress({ changed, commented: [] })
      }
      // A retry after a failed comment must not settle the messages again: that would change none of them.
      const text = `${done} ${changed}: ${reason}`
      if (reason !== '') {
        await comment(messages, text, key, progress.commented, (commented) =>
          setProgress({ changed, commented }),
        )
      }
      return `${done} ${countOf(changed, 'message')}`
    })
  return (
    <Confirm
      title={`${title} ${count}`}
      cancelLabel={isSettled ? 'Close' : cancel}
      confirmLabel={isSettled ? 'Save the reason' : `${title} ${count}`}
      isDanger={kind === 'discard' && !isSettled}
      hasReason={canComment}
      count={messages.length}
      cli={`redrive ${kind} --id ${ids.join(' ')}`}
      isBusy={isBusy}
      problem={
        problem !== undefined && isSettled
          ? `The messages are ${done.toLowerCase()}, but the reason is not saved as a comment. ${problem} Save it again.`
          : problem
      }
      onConfirm={confirm}
      onClose={isSettled ? finish : onClose}
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

/** The finished steps. A repeated click continues after them. */
interface Progress {
  /** Number of changed messages. Undefined: nothing is changed yet. */
  readonly changed?: number
  /** The message or the groups that have the comment. */
  readonly commented: readonly string[]
}

/** Writes the reason where readers look for it: at the message, or at the groups of several messages. */
async function comment(
  messages: SettleDialogProps['messages'],
  text: string,
  key: string,
  before: readonly string[],
  onCommented: (commented: readonly string[]) => void,
): Promise<void> {
  const [first] = messages
  const isOne = messages.length === 1
  const places = isOne ? [first?.id ?? ''] : new Set(messages.map(({ group }) => group))
  let commented = before
  for (const place of places) {
    if (commented.includes(place)) continue
    await (isOne ? commentMessage : commentGroup)(place, text, `${key}-${place}`)
    commented = [...commented, place]
    onCommented(commented)
  }
}
