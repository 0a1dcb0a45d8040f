import { Confirm } from '../../components/dialog.tsx'
import { setOutcome } from '../../data/messages.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { countOf } from '../../words/numbers.ts'

const WORDS = {
  resolved: {
    title: 'Set the outcome: took effect',
    effect:
      'Confirm that the consumer handled the message. It becomes resolved and is not replayed again.',
    done: 'Resolved',
  },
  open: {
    title: 'Set the outcome: reopen',
    effect:
      'Confirm that the consumer did not handle the message. It becomes open and can be replayed again. If it was handled, a replay may take effect twice.',
    done: 'Reopened',
  },
} as const

export interface OutcomeDialogProps {
  readonly as: keyof typeof WORDS
  readonly ids: readonly string[]
  readonly onClose: () => void
}

/** The dialog before a person sets the outcome of replays that nothing confirmed. */
export function OutcomeDialog({ as, ids, onClose }: OutcomeDialogProps) {
  const { title, effect, done } = WORDS[as]
  const { run, isBusy, problem } = useChange(onClose)
  return (
    <Confirm
      title={title}
      cancelLabel="Cancel"
      confirmLabel={`${as === 'resolved' ? 'Resolve' : 'Reopen'} ${countOf(ids.length, 'message')}`}
      cli={`redrive set-outcome --as ${as} --id ${ids.join(' ')}`}
      count={ids.length}
      isBusy={isBusy}
      problem={problem}
      onConfirm={() =>
        run(async (key) => `${done} ${countOf(await setOutcome(ids, as, key), 'message')}`)
      }
      onClose={onClose}
    >
      <p>{effect}</p>
    </Confirm>
  )
}
