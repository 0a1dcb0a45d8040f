import type { Run } from '@redrive/api'
import { Link, type LinkProps } from '@tanstack/react-router'
import { lookOf } from '../../components/button.tsx'
import { Note } from '../../components/note.tsx'
import { moveDraft } from '../../data/drafts.ts'
import { replacementOf } from '../../words/runs.ts'

export interface ReplacedNoteProps {
  readonly run: Run
  /** The plans that await an approval. */
  readonly planned: readonly Run[]
  readonly isBar?: true
  readonly linkTo: (replacement: Run) => Pick<LinkProps, 'to' | 'params' | 'search'>
}

/** Reports that another plan replaced this one. The link takes the typed fields of this tab to the new plan. */
export function ReplacedNote({ run, planned, isBar, linkTo }: ReplacedNoteProps) {
  const replacement = replacementOf(run, planned)
  if (replacement === undefined) return null
  return (
    <Note
      tone="warn"
      shape="skip"
      {...(isBar === true ? { isBar } : {})}
      action={
        <Link
          {...linkTo(replacement)}
          replace
          onClick={() => moveDraft(run.id, replacement.id)}
          {...lookOf({ size: 'small' })}
        >
          Show the new plan
        </Link>
      }
    >
      This plan was replaced.
    </Note>
  )
}
