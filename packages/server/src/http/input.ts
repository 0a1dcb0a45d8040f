import { fromQueryString, type Route } from '@redrive/api/internal'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { ProblemError } from '../access/problem-error.ts'

/** The validated input of a handler. */
export interface AnyInput {
  readonly params?: unknown
  readonly query?: unknown
  readonly body?: unknown
  readonly ifMatch?: string
}

type ReadInput = (request: FastifyRequest) => AnyInput

/** Returns a function that reads the input of an operation. It throws a list of all problems. */
export function inputOf(route: Route): ReadInput {
  // Rejects unknown names, because an ignored filter would return too much.
  const query = route.query?.strict()
  return (request) => {
    const problems: string[] = []
    const read = (part: string, schema: z.ZodType | undefined, value: unknown) => {
      if (schema === undefined) return {}
      const result = schema.safeParse(value)
      if (result.success) return { [part]: result.data }
      problems.push(...result.error.issues.map((issue) => sentenceOf(part, issue)))
      return {}
    }
    const raw = request.query as Readonly<Record<string, unknown>>
    const input: AnyInput = {
      ...read('params', route.params, request.params),
      ...read('query', query, query === undefined ? {} : fromQueryString(query, raw)),
      ...read('body', route.body, request.body),
      ...ifMatchOf(route, request),
    }
    if (problems.length > 0) {
      throw new ProblemError('invalid', 'The request is not valid. See "problems".', { problems })
    }
    return input
  }
}

function sentenceOf(part: string, { path, message }: z.core.$ZodIssue): string {
  return `${[part, ...path.map(String)].join('.')}: ${message}`
}

function ifMatchOf({ ifMatch }: Route, request: FastifyRequest): { ifMatch?: string } {
  const given = request.headers['if-match']
  if (ifMatch === undefined || given !== undefined)
    return given === undefined ? {} : { ifMatch: given }
  if (ifMatch === 'edit') return {}
  const detail = "Send the header 'If-Match' with the ETag of the version that you read."
  throw new ProblemError('if_match_missing', detail)
}

/** Up to 255 visible characters; a UUID has 36. */
const KEY = /^[\x21-\x7e]{1,255}$/

export function idempotencyKeyOf(request: FastifyRequest): string {
  const key = request.headers['idempotency-key']
  if (key === undefined) {
    const detail =
      "Send the header 'Idempotency-Key' with a new UUID. Use the same value when you repeat the request."
    throw new ProblemError('idempotency_key_missing', detail)
  }
  if (typeof key === 'string' && KEY.test(key)) return key
  const problem = 'Idempotency-Key: expected 1 to 255 visible characters'
  throw new ProblemError('invalid', problem, { problems: [problem] })
}
