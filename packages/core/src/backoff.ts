import type { Duration } from './duration.ts'
import type { FailureClass } from './failure.ts'

/** A source of random numbers in [0, 1). */
export type Random = () => number

/**
 * How a delay is spread, so that many messages do not return at the same time.
 * `full`: anywhere below the delay. `equal`: in its upper half. `{ proportional: 0.2 }`: ±20 %. `none`: exact.
 */
export type Jitter = 'full' | 'equal' | 'none' | { readonly proportional: number }

/** Delays that grow by a factor: base · factor^(n-1), at most cap. */
export interface ExponentialOptions {
  /** First delay ('1ms'–'366d', default '1s', sinks '100ms'). */
  readonly base?: Duration
  /** Factor from one delay to the next (1–100, default 2). */
  readonly factor?: number
  /** Longest delay ('1ms'–'366d', default '60s', sinks '5s'). */
  readonly cap?: Duration
  /** How the delay is spread. Default 'full'. */
  readonly jitter?: Jitter
}

/** Delays that grow by a step: base + (n-1) · step, at most cap. */
export interface LinearOptions {
  /** First delay ('1ms'–'366d', default '1s', sinks '100ms'). */
  readonly base?: Duration
  /** Difference from one delay to the next ('0ms'–'366d', default '1s', sinks '100ms'). */
  readonly step?: Duration
  /** Longest delay ('1ms'–'366d', default '60s', sinks '5s'). */
  readonly cap?: Duration
  /** How the delay is spread. Default 'full'. */
  readonly jitter?: Jitter
}

/** The same delay every time. */
export interface FixedOptions {
  /** The delay ('0ms'–'366d'). */
  readonly delay: Duration
  /** How the delay is spread. Default 'none'. */
  readonly jitter?: Jitter
}

/** A random delay between base and three times the last delay, at most cap. */
export interface DecorrelatedOptions {
  /** Shortest delay ('1ms'–'366d', default '1s', sinks '100ms'). */
  readonly base?: Duration
  /** Longest delay ('1ms'–'366d', default '60s', sinks '5s'). */
  readonly cap?: Duration
}

/** A list of delays per failure class; the last one repeats. */
export interface ProgressiveOptions {
  /** Delays of each failure class, the first retry first. */
  readonly tiers: Partial<Readonly<Record<FailureClass, readonly Duration[]>>>
  /** Delays of the classes that `tiers` does not list. */
  readonly otherwise: readonly Duration[]
  /** How the delay is spread. Default 'full'. */
  readonly jitter?: Jitter
}

/** Backoff as the user writes it. It is plain data, so a configuration file can contain it. */
export type BackoffOptions =
  | ({ readonly kind: 'exponential' } & ExponentialOptions)
  | ({ readonly kind: 'linear' } & LinearOptions)
  | ({ readonly kind: 'fixed' } & FixedOptions)
  | ({ readonly kind: 'decorrelated' } & DecorrelatedOptions)
  | ({ readonly kind: 'progressive' } & ProgressiveOptions)

export const exponential = (options: ExponentialOptions = {}): BackoffOptions => ({
  kind: 'exponential',
  ...options,
})
export const linear = (options: LinearOptions = {}): BackoffOptions => ({
  kind: 'linear',
  ...options,
})
export const fixed = (delay: Duration, jitter: Jitter = 'none'): BackoffOptions => ({
  kind: 'fixed',
  delay,
  jitter,
})
export const decorrelated = (options: DecorrelatedOptions = {}): BackoffOptions => ({
  kind: 'decorrelated',
  ...options,
})
export const progressive = (options: ProgressiveOptions): BackoffOptions => ({
  kind: 'progressive',
  ...options,
})

/** The resolved backoff: every field is set, in milliseconds. */
export type Backoff =
  | {
      readonly kind: 'exponential'
      readonly baseMs: number
      readonly factor: number
      readonly capMs: number
      readonly jitter: Jitter
    }
  | {
      readonly kind: 'linear'
      readonly baseMs: number
      readonly stepMs: number
      readonly capMs: number
      readonly jitter: Jitter
    }
  | { readonly kind: 'fixed'; readonly delayMs: number; readonly jitter: Jitter }
  | { readonly kind: 'decorrelated'; readonly baseMs: number; readonly capMs: number }
  | {
      readonly kind: 'progressive'
      readonly tiersMs: Partial<Readonly<Record<FailureClass, readonly number[]>>>
      readonly otherwiseMs: readonly number[]
      readonly jitter: Jitter
    }

export interface BackoffInput {
  /** Number of the attempt that just failed, from 1. */
  readonly attemptNumber: number
  readonly failureClass: FailureClass
  /** The previous delay, 0 when there was none. */
  readonly lastDelayMs: number
  readonly floorMs: number
  readonly random: Random
}

/** Returns the milliseconds to wait after a failed attempt. Jitter never makes it shorter than the minimum delay. */
export function delayAfter(backoff: Backoff, input: BackoffInput): number {
  return Math.max(input.floorMs, Math.round(drawDelay(backoff, input)))
}

function drawDelay(backoff: Backoff, input: BackoffInput): number {
  if (backoff.kind !== 'decorrelated') {
    return spread(plainDelay(backoff, input), backoff.jitter, input.random)
  }
  const high = Math.max(backoff.baseMs, input.lastDelayMs) * 3
  return Math.min(backoff.capMs, backoff.baseMs + input.random() * (high - backoff.baseMs))
}

function plainDelay(
  backoff: Exclude<Backoff, { kind: 'decorrelated' }>,
  { attemptNumber, failureClass }: BackoffInput,
): number {
  switch (backoff.kind) {
    case 'exponential':
      return Math.min(backoff.capMs, backoff.baseMs * backoff.factor ** (attemptNumber - 1))
    case 'linear':
      return Math.min(backoff.capMs, backoff.baseMs + (attemptNumber - 1) * backoff.stepMs)
    case 'fixed':
      return backoff.delayMs
    case 'progressive': {
      const tiers = backoff.tiersMs[failureClass] ?? backoff.otherwiseMs
      return tiers[Math.min(attemptNumber, tiers.length) - 1] ?? 0
    }
  }
}

function spread(delayMs: number, jitter: Jitter, random: Random): number {
  if (jitter === 'none') return delayMs
  if (jitter === 'full') return random() * delayMs
  if (jitter === 'equal') return delayMs / 2 + (random() * delayMs) / 2
  return delayMs * (1 + jitter.proportional * (2 * random() - 1))
}

/** Returns the longest delay this backoff can produce. A transport must be able to delay a message that long. */
export function longestDelayMs(backoff: Backoff): number {
  switch (backoff.kind) {
    case 'fixed':
      return stretched(backoff.delayMs, backoff.jitter)
    case 'progressive':
      return stretched(
        Math.max(...backoff.otherwiseMs, ...Object.values(backoff.tiersMs).flat()),
        backoff.jitter,
      )
    case 'decorrelated':
      return backoff.capMs
    default:
      return stretched(backoff.capMs, backoff.jitter)
  }
}

function stretched(delayMs: number, jitter: Jitter): number {
  return typeof jitter === 'object' ? Math.ceil(delayMs * (1 + jitter.proportional)) : delayMs
}
