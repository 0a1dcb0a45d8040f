import type { ProblemCode } from '@redrive/api'

/** Exit codes. Scripts rely on them, so they never change. */
export const EXIT = {
  /** The command succeeded. */
  ok: 0,
  /** The command failed, or the prompt was declined. */
  failure: 1,
  /** A flag, an argument or a setting is invalid. */
  usage: 2,
  /** The resource does not exist, or you may not see it. */
  notFound: 3,
  /** You are not signed in, or lack the permission. */
  auth: 4,
  /** The current state does not allow the change, or another user changed it first. */
  conflict: 5,
  /** A part of a batch succeeded. */
  partial: 6,
  /** The command stopped waiting; the run continues. */
  timeout: 7,
  /** The command succeeded, with a warning: see its output. */
  warning: 8,
  /** Ctrl-C: 128 plus the number of SIGINT, as in shells. */
  interrupted: 130,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The exit code for each problem code of the API. */
export const EXIT_OF_PROBLEM: Readonly<Record<ProblemCode, ExitCode>> = {
  invalid: EXIT.usage,
  idempotency_key_missing: EXIT.failure,
  unauthenticated: EXIT.auth,
  forbidden: EXIT.auth,
  not_found: EXIT.notFound,
  conflict: EXIT.conflict,
  in_progress: EXIT.conflict,
  precondition_failed: EXIT.conflict,
  too_large: EXIT.usage,
  unsupported_media_type: EXIT.failure,
  idempotency_key_reused: EXIT.conflict,
  too_broad: EXIT.usage,
  if_match_missing: EXIT.failure,
  too_many_requests: EXIT.failure,
  internal: EXIT.failure,
  unavailable: EXIT.failure,
}

/** An error that ends a command. The message contains what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}
