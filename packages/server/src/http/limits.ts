import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'

export interface Limits {
  /** Maximum number of requests of one caller per minute (default 600). */
  readonly requestsPerMinute?: number
  /** Maximum size of a body (default 1 MiB). A plan may have 12 MiB. */
  readonly bodyBytes?: number
}

const REQUESTS_PER_MINUTE = 600
export const BODY_BYTES = 1_048_576
/** 12 MiB: an edited body of 8 MiB as base64, and the rest of the plan. */
export const PLAN_BYTES: number = 12 * 1_048_576
/** 16 KiB of headers, including 8 KiB for the URL, which is enough for a hundred ids in a query. */
export const HEADER_BYTES = 16_384
export const URL_MAX = 8_192
/** 30 s to receive a request. A slower client blocks a connection. */
export const ARRIVAL_MS = 30_000
/** 5 s between two checks for slow requests. */
export const ARRIVAL_CHECK_MS = 5_000
/** 100 nested levels; a readable JSON Schema has about twenty. The JSON parser recurses at each level. */
export const DEPTH_MAX = 100
/** 2,000 characters for one path parameter: a name of 500 with every character escaped. */
export const PARAM_MAX = 2_000
/** Expected number of callers behind one address, for example in an office. */
const CALLERS_PER_ADDRESS = 5
/** 10,000 addresses and 10,000 callers are counted. The least recently used are dropped. */
const CACHE_SIZE = 10_000
const MINUTE_MS = 60_000

export interface RateLimits {
  /** Limits by address, before authentication. */
  address(request: FastifyRequest): Promise<void>
  caller(request: FastifyRequest, caller: Caller): Promise<void>
}

export async function rateLimits(app: FastifyInstance, limits: Limits): Promise<RateLimits> {
  const { requestsPerMinute: max = REQUESTS_PER_MINUTE } = limits
  await app.register(rateLimit, { global: false, cache: CACHE_SIZE })
  const keys = new WeakMap<FastifyRequest, string>()
  const byAddress = app.createRateLimit({ max: max * CALLERS_PER_ADDRESS, timeWindow: MINUTE_MS })
  const byCaller = app.createRateLimit({
    max,
    timeWindow: MINUTE_MS,
    keyGenerator: (request) => keys.get(request) ?? request.ip,
  })
  return {
    async address(request) {
      rejectIfExceeded(await byAddress(request))
    },
    async caller(request, { person, credential }) {
      keys.set(request, JSON.stringify([person, credential ?? null]))
      rejectIfExceeded(await byCaller(request))
    },
  }
}

type RateLimitResult = Awaited<ReturnType<ReturnType<FastifyInstance['createRateLimit']>>>

function rejectIfExceeded(result: RateLimitResult): void {
  if (result.isAllowed || !result.isExceeded) return
  const detail = `More than ${result.max} requests in a minute. Wait, then send requests more slowly.`
  throw new ProblemError('too_many_requests', detail, { retryAfterMs: result.ttl })
}
