import { z } from 'zod'

/** What can go wrong, for programs. A code never changes its meaning, and its status never changes. */
export const PROBLEMS = {
  /** The request does not fit; `problems` says where. */
  invalid: 400,
  /** A mutation without the header `Idempotency-Key`. */
  idempotency_key_missing: 400,
  unauthenticated: 401,
  /** Who asks may see it, but may not do this. */
  forbidden: 403,
  /** It is not there, or who asks may not know of it. */
  not_found: 404,
  /** What is there does not allow it now; `detail` says why. */
  conflict: 409,
  /** The same `Idempotency-Key` is being worked on. */
  in_progress: 409,
  /** It was changed since `If-Match` was read. */
  changed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  /** The same `Idempotency-Key` with another request. */
  idempotency_key_reused: 422,
  /** The search would take too long: narrow it. */
  too_broad: 422,
  /** A change without the header `If-Match`. */
  if_match_missing: 428,
  too_many_requests: 429,
  internal: 500,
  /** The database or a broker does not answer. */
  unavailable: 503,
} as const
export type ProblemCode = keyof typeof PROBLEMS

export const PROBLEM_TYPE = 'urn:redrive:problem:'

/** RFC 9457, `application/problem+json`. */
export const problem = z.object({
  type: z.string().describe(`\`${PROBLEM_TYPE}\` and the code`),
  title: z.string(),
  status: z.int(),
  code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
  detail: z.string().describe('What happened and what to do about it'),
  problems: z.array(z.string()).optional().describe('Every problem of the request'),
  needsAnotherPerson: z
    .boolean()
    .optional()
    .describe('True: it is possible now, but not for who asks, because of four eyes'),
  requestId: z.string().describe('Names the request in the logs'),
})
export type Problem = z.output<typeof problem>

/** An answer that is not the one that was asked for. */
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
