import { type Problem, PROBLEM_TYPE, type ProblemCode, PROBLEMS } from '@redrive/api'
import { isRedriveError, type RedriveErrorCode } from '@redrive/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOddValue, Refusal } from '../access/refusal.ts'

/** What errors of the catalog mean to who asks. What is not here is a fault of ours. */
const CODES: Readonly<Partial<Record<RedriveErrorCode, ProblemCode>>> = {
  POLICY_INVALID: 'invalid',
  CONFLICT: 'conflict',
  NEEDS_ANOTHER_PERSON: 'conflict',
  // The catalog's word for a question that took too long.
  REFUSED: 'too_broad',
  UNREACHABLE: 'unavailable',
  TOPOLOGY_MISMATCH: 'unavailable',
}

/** What Fastify says about a request before it is ours. */
const FASTIFY: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['too_large', 'The body is larger than this operation takes.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    "Send JSON, with the header 'Content-Type: application/json'.",
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid', 'The body is not as long as it says.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['invalid', 'The body is empty. Leave out its content type.'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['invalid', 'The body is not JSON.'],
  FST_ERR_BAD_URL: ['invalid', 'The address cannot be read.'],
}

const TITLES: Readonly<Record<ProblemCode, string>> = {
  invalid: 'The request does not fit',
  idempotency_key_missing: 'No Idempotency-Key',
  unauthenticated: 'Not signed in',
  forbidden: 'Not allowed',
  not_found: 'Not found',
  conflict: 'Not possible now',
  in_progress: 'Being worked on',
  changed: 'Changed since',
  too_large: 'Too large',
  unsupported_media_type: 'Not JSON',
  idempotency_key_reused: 'Idempotency-Key used before',
  too_broad: 'Too broad',
  if_match_missing: 'No If-Match',
  too_many_requests: 'Too many requests',
  internal: 'A fault of the server',
  unavailable: 'Not available now',
}

const INTERNAL =
  'Something went wrong that should not. It is in the log of the server, under this request id.'
const UNAVAILABLE =
  'The database does not answer, or is not set up. The log of the server says why.'
const ODD_VALUE =
  'A value is out of range, or has a character that the database does not keep, such as NUL. Send another.'
/** 5 s: a database that was restarted is back by then. */
const RETRY_MS = 5_000

/** The one place where an error becomes an answer. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (isRedriveError(error)) {
    const { code, message, problems } = error
    const known = CODES[code]
    if (known === 'unavailable') return unavailable(error)
    if (known !== undefined) return new Refusal(known, message, { problems, cause: error })
    return internal(error)
  }
  if (isOddValue(error)) return new Refusal('invalid', ODD_VALUE, { cause: error })
  const fastify = FASTIFY[codeOf(error)]
  if (fastify !== undefined) return new Refusal(fastify[0], fastify[1], { cause: error })
  if (statusOf(error) === 400) return new Refusal('invalid', 'The request cannot be read.')
  return internal(error)
}

const unavailable = (cause: unknown) =>
  new Refusal('unavailable', UNAVAILABLE, { cause, retryAfterMs: RETRY_MS })
const internal = (cause: unknown) => new Refusal('internal', INTERNAL, { cause })

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
  const refusal = refusalOf(error)
  const { code, problems, retryAfterMs } = refusal
  const status = PROBLEMS[code]
  if (status >= 500) request.log.error({ err: error, code }, 'request failed')
  // Only what kind it is: the database repeats the value, and requests are not in the log.
  if (isOddValue(error)) request.log.warn({ sqlState: codeOf(error) }, 'a value was refused')
  if (retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(retryAfterMs / 1_000))
  if (code === 'unauthenticated') reply.header('www-authenticate', 'Bearer')
  const problem: Problem = {
    type: `${PROBLEM_TYPE}${code}`,
    title: TITLES[code],
    status,
    code,
    detail: refusal.message,
    ...(problems.length === 0 ? {} : { problems: [...problems] }),
    ...(isRedriveError(refusal.cause, 'NEEDS_ANOTHER_PERSON') ? { needsAnotherPerson: true } : {}),
    requestId: request.id,
  }
  // As text: the serialiser would set a content type of its own.
  return (
    reply
      .code(status)
      // Again: what cannot be routed has met no hook before.
      .header('x-request-id', request.id)
      .header('cache-control', 'no-store')
      .type('application/problem+json; charset=utf-8')
      .send(JSON.stringify(problem))
  )
}
