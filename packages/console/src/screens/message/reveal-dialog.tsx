import type { DeadLetterDetail } from '@redrive/api'
import { useState } from 'react'
import { Confirm } from '../../components/dialog.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { useMe } from '../../data/me.ts'
import { type Payload, revealPayload } from '../../data/messages.ts'

export interface RevealDialogProps {
  readonly message: Pick<DeadLetterDetail, 'id'>
  readonly onClose: () => void
  readonly onRevealed: (payload: Payload) => void
}

/** Asks for the reason to see the whole body. The server requires it and keeps it. */
export function RevealDialog({ message: { id }, onClose, onRevealed }: RevealDialogProps) {
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
        The audit log keeps that {me.name} saw this body, and the reason. The page hides it again
        after 5 minutes.
      </p>
    </Confirm>
  )
}
