import { type Edit, lineOf, type Syntax } from './syntax.ts'
import type { Reason } from './proposal.ts'

/** Collects the edits of a file, and the reasons against them. */
export interface Draft {
  readonly text: string
  readonly edits: Edit[]
  readonly reasons: Reason[]
  /** Errors that the handler rejects without a retry. */
  readonly terminal: Set<string>
}

export const startDraft = (text: string): Draft => ({
  text,
  edits: [],
  reasons: [],
  terminal: new Set(),
})

/** Leaves the file to the user, because of a node. */
export function refuse(draft: Draft, node: Syntax, text: string): void {
  draft.reasons.push({ line: lineOf(draft.text, node.start), text })
}

export const sourceOf = ({ text }: Draft, { start, end }: Syntax): string => text.slice(start, end)

export const rangeOf = ({
  start,
  end,
}: Syntax): { readonly start: number; readonly end: number } => ({ start, end })
