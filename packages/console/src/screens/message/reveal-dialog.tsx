import type { DeadLetterDetail } from '@redrive/api'
import { useState } from 'react'
import { Confirm } from '../../components/dialog.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { useMe } from '../../data/me.ts'
import { type Payload, revealPayload } from '../../data/messages.ts'

export interface RevealDialogProps {
  readonly message: Pick<DeadLetterDetail, 'id'>
  /** When the page hides the body again. */
  readonly hiddenWhen: string
  readonly onClose: () => void
  readonly onRevealed: (payload: Payload) => void
}

/** Asks for the reason to see the whole body. The server requires it and keeps it. */
export function RevealDialog(props: RevealDialogProps) {
  const { message, hiddenWhen, onClose, onRevealed } = props
  const { id } = message
  const me = useMe()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const reveal = (reason: string) => {
    setBusy(true)
    setProblem(undefined)
    revealPayload(id, reason)
      .then(onRevealed)
      .catch((error: unknown) => setProblem(problemOf(error).detail))
      .finally(() => setBusy(false))
  }
  return (
    <Confirm
      title="Reveal the body"
      cancelLabel="Keep hidden"
      confirmLabel="Reveal the body"
      hasReason
      isReasonRequired
      cli={`redrive messages show ${id} --unmasked --reason "…"`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={reveal}
      onClose={onClose}
    >
      <p>
        The audit log keeps that {me.name} saw this body, and the reason. {hiddenWhen}
      </p>
    </Confirm>
  )
}
