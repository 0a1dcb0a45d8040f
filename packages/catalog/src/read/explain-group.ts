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
    /** The message with ids, numbers and quoted values replaced. */
    readonly message: string
  }
  /** Parts of the signature that a dead letter does not contain; only the consumer has them. */
  readonly unknown: readonly ('type' | 'frame' | 'handler')[]
  /** The original message of the first dead letter. */
  readonly sample: string
}

export async function explainGroup(
  reader: Reader,
  id: string,
): Promise<GroupExplanation | undefined> {
  const group = await readGroup(reader, id)
  if (group === undefined) return undefined
  const { signature, algorithm, source, class: kind, code, title, sample } = group
  return {
    signature,
    algorithm,
    shared: { source, class: kind, code, message: title },
    unknown: ['type', 'frame', 'handler'],
    sample,
  }
}
