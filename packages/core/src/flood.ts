/**
 * Flood guard: one bucket of dead letters per signature. A burst of similar dead letters is an
 * incident. Its messages should wait in the source, which keeps order and retention, and not fill
 * the dead-letter queue.
 */
export interface FloodPolicy {
  readonly burst: number
  readonly perMinute: number
  readonly signatures: number
}

export interface FloodBucket {
  readonly signature: string
  readonly tokens: number
  readonly at: number
}

/** Least recently used first; bounded by `signatures`. */
export type FloodState = readonly FloodBucket[]

export const NO_FLOOD: FloodState = Object.freeze([])

export interface FloodResult {
  readonly state: FloodState
  /** Undefined when the dead letter may pass; otherwise the time when the next one may. */
  readonly until: number | undefined
}

export function takeDeadLetter(
  policy: FloodPolicy,
  state: FloodState,
  signature: string,
  now: number,
): FloodResult {
  const bucket = state.find((one) => one.signature === signature)
  const tokens = bucket === undefined ? policy.burst : refilled(policy, bucket, now)
  const allowed = tokens >= 1
  const kept: FloodBucket = { signature, tokens: allowed ? tokens - 1 : tokens, at: now }
  const others = state.filter((one) => one !== bucket)
  const surplus = Math.max(0, others.length + 1 - policy.signatures)
  const waitMs = Math.ceil(((1 - tokens) * 60_000) / policy.perMinute)
  return { state: [...others.slice(surplus), kept], until: allowed ? undefined : now + waitMs }
}

function refilled(policy: FloodPolicy, bucket: FloodBucket, now: number): number {
  const minutes = Math.max(0, now - bucket.at) / 60_000
  return Math.min(policy.burst, bucket.tokens + minutes * policy.perMinute)
}
