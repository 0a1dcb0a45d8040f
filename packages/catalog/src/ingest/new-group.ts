import type { FailureClass } from '@redrive/core'

/** A group as its first dead letter creates it. */
export interface NewGroup {
  readonly id: string
  readonly signature: string
  readonly algorithm: number
  readonly class: FailureClass
  readonly code: string | null
  readonly errorType: string | null
  readonly handler: string | null
  /** The first line of the user's code in the stack trace. Null: not part of the signature, or unknown. */
  readonly frame: string | null
  /** The message of its first dead letter. */
  readonly sample: string
  /** The name by a fingerprint rule or a split; it is the title. */
  readonly name?: string
  /** The named group that this one is a part of. */
  readonly root?: NewGroup
}
