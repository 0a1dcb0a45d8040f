import type { ProblemCode } from '@redrive/api'
import { isRedriveError } from '@redrive/core'

/** An answer that is a problem: what happened and what to do about it, in a sentence that may leave the server. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: ProblemCode
  readonly problems: readonly string[]
  /** How long to wait before asking again. */
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

/** Our own answers and those of the catalog: nothing has happened. Of everything else nobody knows. */
export const isRefused = (error: unknown): boolean =>
  error instanceof Refusal ||
  isRedriveError(error, 'CONFLICT') ||
  isRedriveError(error, 'NEEDS_ANOTHER_PERSON') ||
  isRedriveError(error, 'POLICY_INVALID') ||
  isRedriveError(error, 'REFUSED') ||
  isOddValue(error)

/** What the database cannot take as a value (SQLSTATE class 22). It undoes the whole statement. */
export function isOddValue(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code)
}
