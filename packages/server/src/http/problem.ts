import { type Problem, type ProblemCode, PROBLEMS } from '@redrive/api'
import { PROBLEM_TYPE } from '@redrive/api/internal'
import { isRedriveError, type RedriveErrorCode } from '@redrive/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isUnstorableValue, ProblemError } from '../access/problem-error.ts'

/** Problem codes for errors of the catalog. Every other error is an internal error. */
const CODES: Readonly<Partial<Record<RedriveErrorCode, ProblemCode>>> = {
  POLICY_INVALID: 'invalid',
  CONFLICT: 'conflict',
  NEEDS_ANOTHER_PERSON: 'conflict',
  // The catalog uses this code for a search that timed out.
  REFUSED: 'too_broad',
  UNREACHABLE: 'unavailable',
  TOPOLOGY_MISMATCH: 'unavailable',
}

/** Problems for errors that Fastify throws before a handler runs. */
const FASTIFY: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['too_large', 'The body is larger than this operation allows.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    "Send JSON with the header 'Content-Type: application/json'.",
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'invalid',
    'The body does not have the length in the header Content-Length.',
  ],
  FST_ERR_CTP_EMPTY_JSON_BODY: [
    'invalid',
    'The body is empty. Send a body, or remove the header Content-Type.',
  ],
  FST_ERR_CTP_INVALID_JSON_BODY: ['invalid', 'The body is not valid JSON.'],
  FST_ERR_BAD_URL: ['invalid', 'The URL is not valid. Check its escaped characters.'],
}

const TITLES: Readonly<Record<ProblemCode, string>> = {
  invalid: 'Invalid request',
  idempotency_key_missing: 'Missing Idempotency-Key',
  unauthenticated: 'Not authenticated',
  forbidden: 'Permission denied',
  not_found: 'Not found',
  conflict: 'Conflict with the current state',
  in_progress: 'Request in progress',
  precondition_failed: 'Changed in the meantime',
  too_large: 'Too large',
  unsupported_media_type: 'Not JSON',
  idempotency_key_reused: 'Idempotency-Key already used',
  too_broad: 'Search too broad',
  if_match_missing: 'Missing If-Match',
  too_many_requests: 'Too many requests',
  internal: 'Internal error',
  unavailable: 'Temporarily unavailable',
}

const INTERNAL = 'Internal error. See the server log for this request id.'
const UNAVAILABLE =
  'The database is unreachable or not migrated. See the server log for the reason.'
const UNSTORABLE_VALUE =
  'A value is out of range or contains a character that the database cannot store, such as NUL. Send another value.'
/** 5 s: enough for the restart of a database. */
const RETRY_MS = 5_000

/** Converts any error to a `ProblemError`. */
export function refusalOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (isRedriveError(error)) {
    const { code, message, problems } = error
    const known = CODES[code]
    if (known === 'unavailable') return unavailable(error)
    if (known !== undefined) return new ProblemError(known, message, { problems, cause: error })
    return internal(error)
  }
  if (isUnstorableValue(error))
    return new ProblemError('invalid', UNSTORABLE_VALUE, { cause: error })
  const fastify = FASTIFY[codeOf(error)]
  if (fastify !== undefined) return new ProblemError(fastify[0], fastify[1], { cause: error })
  if (statusOf(error) === 400) return new ProblemError('invalid', 'The request is malformed.')
  return internal(error)
}

const unavailable = (cause: unknown) =>
  new ProblemError('unavailable', UNAVAILABLE, { cause, retryAfterMs: RETRY_MS })
const internal = (cause: unknown) => new ProblemError('internal', INTERNAL, { cause })

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : ''
}
const statusOf = (error: unknown) => (error as { statusCode?: unknown } | null)?.statusCode

export async function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<FastifyReply> {
  const problemError = refusalOf(error)
  const { code, problems, retryAfterMs } = problemError
  const status = PROBLEMS[code]
  if (status >= 500) request.log.error({ err: error, code }, 'request failed')
  // Logs only the SQLSTATE, because the error contains the value, and values of requests are not logged.
  if (isUnstorableValue(error)) {
    request.log.warn({ sqlState: codeOf(error) }, 'the database rejected a value')
  }
  if (retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(retryAfterMs / 1_000))
  if (code === 'unauthenticated') reply.header('www-authenticate', 'Bearer')
  const problem: Problem = {
    type: `${PROBLEM_TYPE}${code}`,
    title: TITLES[code],
    status,
    code,
    detail: problemError.message,
    ...(problems.length === 0 ? {} : { problems: [...problems] }),
    ...(isRedriveError(problemError.cause, 'NEEDS_ANOTHER_PERSON')
      ? { needsAnotherPerson: true }
      : {}),
    requestId: request.id,
  }
  // Sent as text, because Fastify's serializer would set another content type.
  return (
    reply
      .code(status)
      // Set here as well, because hooks do not run for a URL that cannot be routed.
      .header('x-request-id', request.id)
      .header('cache-control', 'no-store')
      .type('application/problem+json; charset=utf-8')
      .send(JSON.stringify(problem))
  )
}
