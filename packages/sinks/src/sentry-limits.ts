import type { HttpResponse } from './http.ts'

/** A minute: the wait that Sentry defines for a 429 without a time. */
const DEFAULT_WAIT_MS = 60_000
/** A day: a longer wait is a mistake of a clock. */
const LONGEST_MS = 86_400_000
/** The categories of our events; an empty category means all. */
const CATEGORIES: ReadonlySet<string> = new Set(['', 'error', 'default'])

/** The rate limits that Sentry has set. https://develop.sentry.dev/sdk/foundations/transport/rate-limiting/ */
export class SentryLimits {
  #until = 0

  waitMs(now: number): number {
    return Math.max(0, this.#until - now)
  }

  /** Reads limits. Any response may set them, also a successful one; they apply to the next requests. */
  learn({ status, headers }: Pick<HttpResponse, 'status' | 'headers'>, now: number): void {
    const limits = headers['x-sentry-rate-limits']
    const waitMs =
      limits === undefined
        ? defaultWait(status, headers['retry-after'], now)
        : longestOf(String(limits))
    this.#until = Math.max(this.#until, now + Math.min(waitMs, LONGEST_MS))
  }
}

/** Parses `60:error;default:organization:reason, 2700::key`: seconds, then categories. */
function longestOf(limits: string): number {
  const waits = limits.split(',').map((limit) => {
    const [seconds = '', categories = ''] = limit.trim().split(':')
    const isOurs = categories.split(';').some((category) => CATEGORIES.has(category.trim()))
    if (!isOurs || limit.trim() === '') return 0
    return /^\d+(\.\d+)?$/.test(seconds) ? Number(seconds) * 1_000 : DEFAULT_WAIT_MS
  })
  return Math.max(0, ...waits)
}

function defaultWait(status: number, retryAfter: string | undefined, now: number): number {
  if (status !== 429) return 0
  if (retryAfter === undefined) return DEFAULT_WAIT_MS
  if (/^\d+(\.\d+)?$/.test(retryAfter)) return Number(retryAfter) * 1_000
  const at = Date.parse(retryAfter)
  return Number.isNaN(at) ? DEFAULT_WAIT_MS : Math.max(0, at - now)
}
