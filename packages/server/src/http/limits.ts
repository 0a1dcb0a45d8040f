import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'

export interface Limits {
  /** Requests of one caller in a minute. Default 600. */
  readonly requestsPerMinute?: number
  /** Bytes of a body; a plan may have 12 MiB. Default 1 MiB. */
  readonly bodyBytes?: number
}

const REQUESTS_PER_MINUTE = 600
export const BODY_BYTES = 1_048_576
/** 12 MiB: an edit of 8 MiB as base64, and the rest of the plan. */
export const PLAN_BYTES: number = 12 * 1_048_576
/** 16 KiB of headers and 8 KiB of address, of that: a hundred ids in a query fit. */
export const HEADER_BYTES = 16_384
export const URL_MAX = 8_192
/** 30 s for a request to arrive: whoever is slower holds a connection for nothing. */
export const ARRIVAL_MS = 30_000
/** 5 s: how often it is looked for those. */
export const ARRIVAL_CHECK_MS = 5_000
/** 100 levels of a body: a JSON Schema that people can read has twenty. What reads JSON calls itself for each. */
export const DEPTH_MAX = 100
/** 2,000 characters of one part of an address: a name of 500 with every character escaped. */
export const PARAM_MAX = 2_000
/** An address stands for a whole office: so many callers of one are expected. */
const CALLERS_PER_ADDRESS = 5
/** 10,000 of each are remembered; whoever was not seen for longest is forgotten. */
const REMEMBERED = 10_000
const MINUTE_MS = 60_000

export interface RateLimits {
  /** Before it is known who asks. */
  address(request: FastifyRequest): Promise<void>
  caller(request: FastifyRequest, caller: Caller): Promise<void>
}

export async function rateLimits(app: FastifyInstance, limits: Limits): Promise<RateLimits> {
  const { requestsPerMinute: most = REQUESTS_PER_MINUTE } = limits
  await app.register(rateLimit, { global: false, cache: REMEMBERED })
  const keys = new WeakMap<FastifyRequest, string>()
  const byAddress = app.createRateLimit({ max: most * CALLERS_PER_ADDRESS, timeWindow: MINUTE_MS })
  const byCaller = app.createRateLimit({
    max: most,
    timeWindow: MINUTE_MS,
    keyGenerator: (request) => keys.get(request) ?? request.ip,
  })
  return {
    async address(request) {
      refuse(await byAddress(request))
    },
    async caller(request, { person, credential }) {
      keys.set(request, JSON.stringify([person, credential ?? null]))
      refuse(await byCaller(request))
    },
  }
}

type Counted = Awaited<ReturnType<ReturnType<FastifyInstance['createRateLimit']>>>

function refuse(counted: Counted): void {
  if (counted.isAllowed || !counted.isExceeded) return
  const detail = `More than ${counted.max} requests in a minute. Wait, then go on more slowly.`
  throw new Refusal('too_many_requests', detail, { retryAfterMs: counted.ttl })
}
