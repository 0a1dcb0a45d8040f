import type { ProblemCode } from '@redrive/api'

/** What a script can rely on. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  auth: 4,
  /** What is there does not allow it, or it was changed meanwhile. */
  conflict: 5,
  /** Some of a batch, and not all. */
  partial: 6,
  /** It goes on, but nobody waits for it any more. */
  timeout: 7,
  /** 128 and the number of SIGINT, as shells have it. */
  interrupted: 130,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** One row for each code of the API. */
export const EXIT_OF_PROBLEM: Readonly<Record<ProblemCode, ExitCode>> = {
  invalid: EXIT.usage,
  idempotency_key_missing: EXIT.failure,
  unauthenticated: EXIT.auth,
  forbidden: EXIT.auth,
  not_found: EXIT.notFound,
  conflict: EXIT.conflict,
  in_progress: EXIT.conflict,
  changed: EXIT.conflict,
  too_large: EXIT.usage,
  unsupported_media_type: EXIT.failure,
  idempotency_key_reused: EXIT.conflict,
  too_broad: EXIT.usage,
  if_match_missing: EXIT.failure,
  too_many_requests: EXIT.failure,
  internal: EXIT.failure,
  unavailable: EXIT.failure,
}

/** A command cannot go on; its message says what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}
