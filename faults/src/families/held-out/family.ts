import type { FailureClass } from '@redrive/core'

/** The cause of an error, as its library sets it. */
export interface WrittenCause {
  readonly type: string
  readonly code: string | undefined
  readonly message: string
}

/** One failure with the facts that a dead letter has. */
export interface WrittenFailure {
  /** The class that a person would choose. The grouping rules do not receive it. */
  readonly class: FailureClass
  readonly type: string
  readonly code: string | number | undefined
  readonly message: string
  /** The frames, without the line that repeats the message. `undefined`: the dead letter has no stack. */
  readonly stack: string | undefined
  readonly cause: WrittenCause | undefined
  /** Properties that the library sets on its errors. */
  readonly fields: Readonly<Record<string, string | number>>
  readonly handler: string
  readonly event: string
  /** True: a service without Redrive reported it in headers, as text. */
  readonly isReported: boolean
}

/** Failures with one cause and one remedy. */
export interface WrittenFamily {
  readonly name: string
  /** Families with the same value look alike and are different defects. */
  readonly alike: string | undefined
  readonly failures: readonly WrittenFailure[]
}

/** A mistake in a data file. */
export class DataError extends Error {
  override readonly name = 'DataError'
}
