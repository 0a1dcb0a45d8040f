import { z } from 'zod'

/**
 * Problem codes and their HTTP status. The meaning and the status of a code never change. Each comment has two
 * paragraphs: the meaning, and what to do.
 */
export const PROBLEMS = {
  /**
   * The request is invalid. `problems` lists each field.
   *
   * Correct the listed fields.
   */
  invalid: 400,
  /**
   * The request changes data and has no header `Idempotency-Key`.
   *
   * Send the header with a new random value for each change.
   */
  idempotency_key_missing: 400,
  /**
   * The request has no valid session or token.
   *
   * Sign in, or send a token that has not expired.
   */
  unauthenticated: 401,
  /**
   * The caller may see the resource, but lacks the permission for this operation.
   *
   * Ask an administrator for the permission that `detail` names.
   */
  forbidden: 403,
  /**
   * The resource does not exist, or the caller may not see it.
   *
   * Check the id, and your permissions on its source.
   */
  not_found: 404,
  /**
   * The current state does not allow the operation. `detail` gives the reason.
   *
   * Read the resource again, then decide. With `needsAnotherPerson`, let another person approve.
   */
  conflict: 409,
  /**
   * A request with the same `Idempotency-Key` is in progress.
   *
   * Wait for the time in the header `Retry-After`, then send the same request again.
   */
  in_progress: 409,
  /**
   * The resource changed after the version in `If-Match`.
   *
   * Read the resource again, and send its new `ETag` in `If-Match`.
   */
  precondition_failed: 412,
  /**
   * The body is larger than this operation allows.
   *
   * Send a smaller body, or raise the limit in the config of the server.
   */
  too_large: 413,
  /**
   * The body is not JSON.
   *
   * Send JSON with the header `Content-Type: application/json`.
   */
  unsupported_media_type: 415,
  /**
   * The same `Idempotency-Key` was used with a different request.
   *
   * Use a new key for each change.
   */
  idempotency_key_reused: 422,
  /**
   * The search took longer than the server allows.
   *
   * Use a narrower filter.
   */
  too_broad: 422,
  /**
   * The change has no header `If-Match`.
   *
   * Read the resource, and send its `ETag` in `If-Match`.
   */
  if_match_missing: 428,
  /**
   * The caller sent more requests per minute than the server allows.
   *
   * Wait for the time in the header `Retry-After`.
   */
  too_many_requests: 429,
  /**
   * The server failed. The request may have been applied.
   *
   * Search the server log for the `requestId`.
   */
  internal: 500,
  /**
   * The database or a broker is not reachable, or the database is not migrated.
   *
   * Wait for the time in the header `Retry-After`. If it lasts, see the server log.
   */
  unavailable: 503,
} as const
export type ProblemCode = keyof typeof PROBLEMS

export const PROBLEM_TYPE = 'urn:redrive:problem:'

/** RFC 9457, `application/problem+json`. */
export const problem = z.object({
  type: z.string().describe(`\`${PROBLEM_TYPE}\` followed by the code`),
  title: z.string(),
  status: z.int(),
  code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
  detail: z.string().describe('Cause and remedy'),
  problems: z.array(z.string()).optional().describe('All problems of the request'),
  needsAnotherPerson: z
    .boolean()
    .optional()
    .describe(
      'Whether another person must do this, because the planner cannot approve their own run',
    ),
  requestId: z.string().describe('Id of the request in the server log'),
})
export type Problem = z.output<typeof problem>

/** A problem response of the server, thrown by the client. `problem` has the whole response. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly problem: Problem

  constructor(problem: Problem) {
    super([problem.detail, ...(problem.problems ?? [])].join('\n- '))
    this.problem = problem
  }

  get code(): ProblemCode {
    return this.problem.code
  }
}
