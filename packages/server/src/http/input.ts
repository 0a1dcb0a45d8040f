import { fromQueryString, type Route } from '@redrive/api'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { Refusal } from '../access/refusal.ts'

/** What a handler is asked with, checked. */
export interface AnyInput {
  readonly params?: unknown
  readonly query?: unknown
  readonly body?: unknown
  readonly ifMatch?: string
}

type ReadInput = (request: FastifyRequest) => AnyInput

/** Reads the input of one operation; every problem of a request is said at once. */
export function inputOf(route: Route): ReadInput {
  // A name that does not exist is refused: a filter that is silently ignored finds too much.
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
      throw new Refusal('invalid', 'The request does not fit what is expected.', { problems })
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
  const detail = "Send the header 'If-Match' with the ETag of what you looked at."
  throw new Refusal('if_match_missing', detail)
}

/** 255 visible characters: a UUID has 36. */
const KEY = /^[\x21-\x7e]{1,255}$/

export function idempotencyKeyOf(request: FastifyRequest): string {
  const key = request.headers['idempotency-key']
  if (key === undefined) {
    const detail =
      "Send the header 'Idempotency-Key' with a new UUID, and the same one again when you repeat the request."
    throw new Refusal('idempotency_key_missing', detail)
  }
  if (typeof key === 'string' && KEY.test(key)) return key
  const problem = 'Idempotency-Key: expected 1 to 255 visible characters'
  throw new Refusal('invalid', problem, { problems: [problem] })
}
