import type { ReactNode } from 'react'
import { Mark, type Tone } from './icon.tsx'
import type { MarkName } from './shapes.tsx'
import './note.css'

export interface NoteProps {
  readonly tone: Tone
  readonly shape: MarkName
  readonly children: ReactNode
  readonly action?: ReactNode
  /** A bar reaches from edge to edge above the page. */
  readonly isBar?: boolean
  /** How a screen reader announces it. Default: not at all. */
  readonly role?: 'status' | 'alert'
}

/** A sentence that a reader must notice, with at most one action. */
export const Note = ({ tone, shape, children, action, isBar, role }: NoteProps) => (
  <div className="note" data-tone={tone} data-bar={isBar ? '' : undefined} role={role}>
    <Mark shape={shape} tone={tone} />
    <div className="note-text">{children}</div>
    {action}
  </div>
)
