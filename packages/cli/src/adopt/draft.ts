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

/** Removes the type of the first parameter, because the message of Redrive has another one. */
export function dropType(draft: Draft, handler: Syntax, parameter: Syntax): void {
  const { end } = parameter
  const rest = draft.text.slice(end, 'body' in handler ? (handler.body as Syntax).start : end)
  if (!/^\s*\??:/.test(rest)) return
  const [type] = /^\s*\??:\s*[\w.]+(\s*\|\s*[\w.]+)*\s*(?=,?\s*\))/.exec(rest) ?? []
  if (type === undefined) refuse(draft, parameter, 'The type of the parameter is not a plain name.')
  else draft.edits.push({ start: end, end: end + type.length, text: '' })
}
