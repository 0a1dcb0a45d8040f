/**
 * Flood guard: one bucket of dead letters per signature. A burst of similar dead letters is an
 * incident. The guard slows them, so that an operator can react before many messages are given up.
 */
export interface FloodPolicy {
  readonly burst: number
  readonly perMinute: number
  readonly signatures: number
}

export interface FloodBucket {
  readonly signature: string
  /** Dead letters that may be written now. Negative when some are due later. */
  readonly tokens: number
  readonly at: number
  /** True from the first slowed dead letter until the bucket is full again. */
  readonly isFlood: boolean
}

/** Least recently used first; bounded by `signatures`. */
export type FloodState = readonly FloodBucket[]

export const NO_FLOOD: FloodState = Object.freeze([])

export interface FloodResult {
  readonly state: FloodState
  /** Undefined when the dead letter may be written now; otherwise the time when it may. */
  readonly notBefore: number | undefined
  /** True for the first slowed dead letter of a flood. */
  readonly begins: boolean
}

/** 1,000 dead letters: those that are due later are counted up to here. A longer flood is not remembered. */
const MAX_DEBT = 1_000

/** Counts a dead letter and returns when it may be written. */
export function takeDeadLetter(
  policy: FloodPolicy,
  state: FloodState,
  signature: string,
  now: number,
): FloodResult {
  const bucket = state.find((one) => one.signature === signature)
  const tokens = bucket === undefined ? policy.burst : refilled(policy, bucket, now)
  const isSlowed = tokens < 1
  const wasFlood = bucket?.isFlood === true && tokens < policy.burst
  const kept: FloodBucket = {
    signature,
    tokens: Math.max(-MAX_DEBT, tokens - 1),
    at: now,
    isFlood: isSlowed || wasFlood,
  }
  const others = state.filter((one) => one !== bucket)
  const surplus = Math.max(0, others.length + 1 - policy.signatures)
  const waitMs = Math.ceil(((1 - tokens) * 60_000) / policy.perMinute)
  return {
    state: [...others.slice(surplus), kept],
    notBefore: isSlowed ? now + waitMs : undefined,
    begins: isSlowed && !wasFlood,
  }
}

function refilled(policy: FloodPolicy, bucket: FloodBucket, now: number): number {
  const minutes = Math.max(0, now - bucket.at) / 60_000
  return Math.min(policy.burst, bucket.tokens + minutes * policy.perMinute)
}
