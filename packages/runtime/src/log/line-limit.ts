/** 10 lines of a kind at once show what happens. */
const BURST = 10
/** Then one line every 10 s: a long incident stays visible and does not fill the log. */
const INTERVAL_MS = 10_000

interface Bucket {
  tokens: number
  at: number
  omitted: number
}

/** Limits the lines of each kind. The next line states how many were omitted. */
export class LineLimit {
  readonly #buckets = new Map<string, Bucket>()

  /** Returns the number of omitted lines before this one; undefined when this line is omitted as well. */
  take(kind: string, now: number): number | undefined {
    const bucket = this.#bucket(kind, now)
    if (bucket.tokens < 1) {
      bucket.omitted += 1
      return undefined
    }
    const { omitted } = bucket
    bucket.tokens -= 1
    bucket.omitted = 0
    return omitted
  }

  /** Returns the number of lines omitted since the last one, and counts them as reported. */
  takeOmitted(kind: string, now: number): number {
    const bucket = this.#bucket(kind, now)
    const { omitted } = bucket
    bucket.tokens = Math.max(0, bucket.tokens - 1)
    bucket.omitted = 0
    return omitted
  }

  #bucket(kind: string, now: number): Bucket {
    const bucket = this.#buckets.get(kind) ?? { tokens: BURST, at: now, omitted: 0 }
    this.#buckets.set(kind, bucket)
    const gained = Math.max(0, now - bucket.at) / INTERVAL_MS
    bucket.tokens = Math.min(BURST, bucket.tokens + gained)
    bucket.at = now
    return bucket
  }
}
