import type { FailureClass } from '@redrive/core'
import { readGroup } from './groups.ts'
import type { Reader } from './sql.ts'

/** The values that all dead letters of a group share. */
export interface GroupExplanation {
  readonly signature: string
  /** Version of the rules that made the signature. */
  readonly algorithm: number
  /** The values that two failures of a group share, as far as a dead letter contains them. */
  readonly shared: {
    readonly source: string
    readonly class: FailureClass
    readonly code: string | undefined
    readonly type: string | undefined
    readonly handler: string | undefined
    /** First line of the user's code in the stack trace. Only unknown failures are distinguished by it. */
    readonly frame: string | undefined
    /** The message with ids, numbers and quoted values replaced. */
    readonly message: string
  }
  /** Parts of the signature that the first dead letter does not contain. */
  readonly unknown: readonly ('type' | 'frame' | 'handler')[]
  /** The original message of the first dead letter. */
  readonly sample: string
}

const PARTS = ['type', 'frame', 'handler'] as const

export async function explainGroup(
  reader: Reader,
  id: string,
): Promise<GroupExplanation | undefined> {
  const group = await readGroup(reader, id)
  if (group === undefined) return undefined
  const { signature, algorithm, source, class: kind, code, title, sample } = group
  const { errorType: type, handler, frame } = group
  const parts = { type, handler, frame: kind === 'unknown' ? frame : 'none' }
  return {
    signature,
    algorithm,
    shared: { source, class: kind, code, type, handler, frame, message: title },
    unknown: PARTS.filter((part) => parts[part] === undefined),
    sample,
  }
}
