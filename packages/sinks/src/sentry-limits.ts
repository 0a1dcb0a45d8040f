import type { HttpAnswer } from './http.ts'

/** A minute: what Sentry asks its own clients to wait for when a 429 does not say how long. */
const UNSAID_MS = 60_000
/** A day: longer is a mistake of someone's clock. */
const LONGEST_MS = 86_400_000
/** What our events are counted as; an empty category means all. */
const CATEGORIES: ReadonlySet<string> = new Set(['', 'error', 'default'])

/** Until when Sentry wants to hear nothing of us. https://develop.sentry.dev/sdk/foundations/transport/rate-limiting/ */
export class SentryLimits {
  #until = 0

  waitMs(now: number): number {
    return Math.max(0, this.#until - now)
  }

  /** Any answer may set limits, also a good one: they hold for what comes next. */
  learn({ status, headers }: Pick<HttpAnswer, 'status' | 'headers'>, now: number): void {
    const limits = headers['x-sentry-rate-limits']
    const waitMs =
      limits === undefined ? unsaid(status, headers['retry-after'], now) : longestOf(String(limits))
    this.#until = Math.max(this.#until, now + Math.min(waitMs, LONGEST_MS))
  }
}

/** `60:error;default:organization:reason, 2700::key`: seconds, then for what. */
function longestOf(limits: string): number {
  const waits = limits.split(',').map((limit) => {
    const [seconds = '', categories = ''] = limit.trim().split(':')
    const isOurs = categories.split(';').some((category) => CATEGORIES.has(category.trim()))
    if (!isOurs || limit.trim() === '') return 0
    return /^\d+(\.\d+)?$/.test(seconds) ? Number(seconds) * 1_000 : UNSAID_MS
  })
  return Math.max(0, ...waits)
}

function unsaid(status: number, retryAfter: string | undefined, now: number): number {
  if (status !== 429) return 0
  if (retryAfter === undefined) return UNSAID_MS
  if (/^\d+(\.\d+)?$/.test(retryAfter)) return Number(retryAfter) * 1_000
  const at = Date.parse(retryAfter)
  return Number.isNaN(at) ? UNSAID_MS : Math.max(0, at - now)
}
