import type { Run } from '@redrive/api'
import { Confirm } from '../../components/dialog.tsx'
import { changeRun, type RunVerb } from '../../data/runs.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { countOf } from '../../words/numbers.ts'
import { queuedOf, sentOf } from '../../words/run-progress.ts'
import { sizeOf } from '../../words/runs.ts'

export type RunDialogKind = 'withdraw' | 'cancel' | 'resume'

interface Words {
  readonly verb: RunVerb
  readonly cli: string
  readonly title: string
  readonly confirm: (run: Run) => string
  readonly effect: (run: Run) => string
  readonly done: string
  readonly keep: string
}

const WORDS: Readonly<Record<RunDialogKind, Words>> = {
  withdraw: {
    verb: 'cancelReplay',
    cli: 'cancel',
    title: 'Withdraw the plan',
    confirm: () => 'Withdraw the plan',
    effect: (run) => `Nothing was published. ${countOf(sizeOf(run), 'message')} stay open.`,
    done: 'Plan withdrawn',
    keep: 'Keep the plan',
  },
  cancel: {
    verb: 'cancelReplay',
    cli: 'cancel',
    title: 'Cancel the run',
    confirm: (run) => `Cancel ${countOf(queuedOf(run), 'message')}`,
    effect: (run) =>
      `${countOf(queuedOf(run), 'unpublished message')} reopen. ${countOf(sentOf(run), 'published message')} without an outcome cannot be taken back. A cancelled run cannot be continued.`,
    done: 'Run cancelled',
    keep: 'Keep the run',
  },
  resume: {
    verb: 'resumeReplay',
    cli: 'resume',
    title: 'Resume the run',
    confirm: (run) => `Resume ${countOf(queuedOf(run), 'message')}`,
    effect: (run) =>
      `${run.pauseReason === undefined ? '' : `It was paused: ${run.pauseReason}. `}${countOf(queuedOf(run), 'message')} will be published at ${run.options.ratePerSecond} per second.`,
    done: 'Run resumed',
    keep: 'Keep it paused',
  },
}

export interface RunDialogProps {
  readonly kind: RunDialogKind
  readonly run: Run
  readonly onClose: () => void
}

export function RunDialog({ kind, run, onClose }: RunDialogProps) {
  const { verb, cli, title, confirm, effect, done, keep } = WORDS[kind]
  const { run: start, isBusy, problem } = useChange(onClose)
  return (
    <Confirm
      title={title}
      cancelLabel={keep}
      confirmLabel={confirm(run)}
      isDanger={kind === 'cancel'}
      cli={`redrive replay ${cli} ${run.id}`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={() =>
        start(async (key) => {
          await changeRun(verb, run.id, key)
          return done
        })
      }
      onClose={onClose}
    >
      <p>{effect(run)}</p>
    </Confirm>
  )
}
