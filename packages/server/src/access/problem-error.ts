import type { ProblemCode } from '@redrive/api'
import { isRedriveError } from '@redrive/core'

/** An error that becomes a problem response. Its message is sent to the caller. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly code: ProblemCode
  readonly problems: readonly string[]
  /** Time until the caller may retry. */
  readonly retryAfterMs: number | undefined

  constructor(
    code: ProblemCode,
    detail: string,
    facts: {
      readonly problems?: readonly string[]
      readonly retryAfterMs?: number
      readonly cause?: unknown
    } = {},
  ) {
    super(detail, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.code = code
    this.problems = facts.problems ?? []
    this.retryAfterMs = facts.retryAfterMs
  }
}

/** Returns whether the error means that nothing was changed. For all other errors that is unknown. */
export const isRefused = (error: unknown): boolean =>
  error instanceof ProblemError ||
  isRedriveError(error, 'CONFLICT') ||
  isRedriveError(error, 'NEEDS_ANOTHER_PERSON') ||
  isRedriveError(error, 'POLICY_INVALID') ||
  isRedriveError(error, 'REFUSED') ||
  isUnstorableValue(error)

/** Returns whether the database rejected a value (SQLSTATE class 22). It rolls the statement back. */
export function isUnstorableValue(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code)
}
