import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Confirm } from '../../components/dialog.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { applyFingerprints, previewFingerprints } from '../../data/settings.ts'
import { quoted } from '../../words/equivalents.ts'
import { cappedText, countOf } from '../../words/numbers.ts'
import { useChange } from '../../dialogs/use-change.ts'

export interface ApplyDialogProps {
  readonly sources: readonly string[]
  readonly onClose: () => void
}

/** Moves open dead letters to the groups of the rules. It counts them first. */
export function ApplyDialog({ sources, onClose }: ApplyDialogProps) {
  const { run, isBusy, problem } = useChange(onClose)
  const [reason, setReason] = useState('')
  const preview = useQuery({
    queryKey: ['fingerprint-preview', ...sources],
    queryFn: () => previewFingerprints({ sources }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  })
  const count = preview.data?.rules.reduce((sum, one) => sum + one.count, 0)
  const given = reason.trim()
  const refusal =
    count === undefined
      ? 'The dead letters are being counted.'
      : count === 0
        ? 'No open dead letter would move.'
        : given === ''
          ? 'Enter a reason.'
          : undefined
  return (
    <Confirm
      title="Apply the rules to open dead letters"
      cancelLabel="Cancel"
      confirmLabel={
        count === undefined ? 'Apply' : `Move ${cappedText(count, !preview.data?.isComplete)}`
      }
      cli={`redrive fingerprints apply --source ${sources.map(quoted).join(' ')} --reason ${quoted(given === '' ? '…' : given)}`}
      isBusy={isBusy}
      problem={problem}
      disabledReason={refusal}
      onConfirm={() =>
        run(async (key) => {
          const moved = await applyFingerprints(sources, given, key)
          return `Moved ${countOf(moved, 'dead letter')}`
        })
      }
      onClose={onClose}
    >
      <p>
        Open dead letters join the groups that the rules name. They are not replayed or discarded.
        Remove the rules and apply again to move them back.
      </p>
      {preview.error === null ? null : <LoadError what="the preview" error={preview.error} />}
      {preview.isLoading ? <Skeleton rows={1} /> : null}
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
