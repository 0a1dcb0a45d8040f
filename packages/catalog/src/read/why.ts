import type { FailureClass } from '@redrive/core'
import { readGroup } from './groups.ts'
import type { Reader } from './sql.ts'

/** What the dead letters of a group have in common. */
export interface WhyGrouped {
  readonly signature: string
  /** Version of the rules that made the signature. */
  readonly algorithm: number
  /** What two failures must share to be alike, as far as it travels with a dead letter. */
  readonly shared: {
    readonly source: string
    readonly class: FailureClass
    readonly code: string | undefined
    /** With ids, numbers and quoted values replaced. */
    readonly message: string
  }
  /** Parts of the signature that do not travel: only the consumer knew them. */
  readonly unknown: readonly ('type' | 'frame' | 'handler')[]
  /** A message as it really was. */
  readonly sample: string
}

export async function whyGrouped(reader: Reader, id: string): Promise<WhyGrouped | undefined> {
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
