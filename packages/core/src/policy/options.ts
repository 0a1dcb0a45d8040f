import type { BackoffOptions } from '../backoff.ts'
import type { Rule } from '../classify/rules.ts'
import type { Duration } from '../duration.ts'
import type { FailureClass } from '../failure.ts'
import type { DeadLetterCandidate, Matcher } from '../filter.ts'

/** What you may say about failure. Everything is optional; every default is safe. */
export interface PolicyOptions {
  /** Longest run of one attempt; its AbortSignal fires then. Default '30s', from 1 ms to 12 h. */
  readonly timeout?: Duration
  /** Most attempts in flight in this process; the adaptive limit moves below it. Default 50, from 1 to 10,000. */
  readonly concurrency?: number
  /** 'lane': a message waits for the earlier ones of its lane, retries included. Default 'none'. */
  readonly order?: 'none' | 'lane'
  readonly retry?: RetryOptions
  /** Your own rules, asked first, in order. */
  readonly classify?: readonly Rule[]
  /** Stops calling a dependency that is down. */
  readonly breaker?: 'off' | BreakerOptions
  /** What happens to messages while the breaker is open. Consumers default to 'pause', sinks to 'deadLetter'. */
  readonly whenOpen?: 'pause' | 'deadLetter'
  /** Tells a sick dependency from a bad message; off, every failed attempt counts. */
  readonly outage?: 'off' | OutageOptions
  /** Adaptive concurrency. */
  readonly limit?: 'off' | LimitOptions
  /** How much retrying is allowed. */
  readonly budget?: 'off' | BudgetOptions
  /** When a message is set aside as poison. */
  readonly poison?: 'off' | PoisonOptions
  /** Pauses the consumer instead of emptying the source into the dead-letter queue. */
  readonly flood?: 'off' | FloodOptions
  readonly deadLetter?: DeadLetterOptions
}

export interface RetryOptions {
  /**
   * Counted attempts in all, the first one included. Default 5 (sinks 3), from 1 to 1,000. While the
   * dependency is sick, or nothing proves that it is not, attempts are not counted: see `outage`.
   */
  readonly attempts?: number
  /** Default exponential from 1 s to 60 s with full jitter (sinks 100 ms to 5 s). */
  readonly backoff?: BackoffOptions
  /** No delay is shorter. Default '10ms', from 1 ms to 1 h. */
  readonly floor?: Duration
  /** A message that first failed longer ago is given up. Default '14d'. */
  readonly maxAge?: Duration
  /** Waits shorter than this happen in the process; longer ones on the broker. Default '1s', from 0 to 5 m. */
  readonly inlineBelow?: Duration
  /** Failed attempts kept with the message. Default 10, from 1 to 100. */
  readonly history?: number
  /** Per failure class: retry or give up at once, other attempts, other backoff. */
  readonly classes?: Partial<Readonly<Record<FailureClass, ClassOptions>>>
}

export interface ClassOptions {
  /** Default 'retry' for transient and unknown, 'deadLetter' for schema, business and integration. */
  readonly action?: 'retry' | 'deadLetter'
  readonly attempts?: number
  readonly backoff?: BackoffOptions
}

export interface BreakerOptions {
  /** Default `{ kind: 'consecutive', failures: 5 }`. Ratio counts in windows and needs a minimum of outcomes. */
  readonly trip?:
    | { readonly kind: 'consecutive'; readonly failures?: number }
    | {
        readonly kind: 'ratio'
        readonly ratio?: number
        readonly window?: Duration
        readonly minimum?: number
      }
  /** Shortest time open, ±20 % so that a fleet does not probe together. Default '1s'. */
  readonly minOpen?: Duration
  /** Longest time open, ±20 %. Default '30s' (sinks '60s'). */
  readonly maxOpen?: Duration
  /** Between the two: this share of the outage so far. Default 0.1, from 0 to 1. */
  readonly openShare?: number
  /** Attempts at a time while half-open. Default 1, from 1 to 100. */
  readonly probes?: number
  /** Successes that close it. Default 2, from 1 to 1,000. */
  readonly successes?: number
}

export interface OutageOptions {
  /** Share of outcomes that fail together. Default 0.25, from 0.01 to 1. */
  readonly ratio?: number
  /** At least that many failures; one message of unknown class counts once. Default 5, from 2 to 200. */
  readonly failures?: number
  /** Default '30s'. */
  readonly window?: Duration
}

export interface LimitOptions {
  /** Attempts in flight at first. Default 10. */
  readonly start?: number
  /** Never fewer. Default 1. */
  readonly min?: number
  /** Factor on trouble. Default 0.7, from 0.1 to 0.95. */
  readonly decrease?: number
}

export interface BudgetOptions {
  /** Retries per success. Default 0.1, from 0 to 10. */
  readonly ratio?: number
  /** Retries allowed without any success. Default 10, from 0 to 100,000. */
  readonly floorPerSecond?: number
  /** Most that can be saved up. Default 100. */
  readonly burst?: number
  /** Retries per second at most. Default 100. */
  readonly ratePerSecond?: number
  /** Default 'delay': come back in stages. */
  readonly whenOver?: 'delay' | 'deadLetter' | 'drop'
  /** Stages for retries over budget. Default 10 each second. */
  readonly release?: { readonly batch?: number; readonly interval?: Duration }
}

export interface PoisonOptions {
  /** The same failure this often. Default 3, from 2 to 100. */
  readonly repeats?: number
  /** Within. Default '1d'. */
  readonly window?: Duration
  /** Default ['unknown']. */
  readonly classes?: readonly FailureClass[]
  /** Handed out this often without ever being settled, a message is suspect and runs alone. Default 3, from 2 to 100. */
  readonly suspectDeliveries?: number
  /** Runs alone that a suspect may not survive. Default 3, from 1 to 100. */
  readonly trials?: number
}

export interface FloodOptions {
  /** Alike dead letters at once. Default 100. */
  readonly burst?: number
  /** Then so many a minute. Default 60. */
  readonly perMinute?: number
  /** Signatures watched at once. Default 64, from 2 to 10,000. */
  readonly signatures?: number
}

export interface DeadLetterOptions {
  /** Never kept: these are dropped when given up. */
  readonly never?: readonly Matcher[]
  /** Always kept, whatever `when` says. */
  readonly always?: readonly Matcher[]
  /** Kept when it returns true. Default: kept. */
  readonly when?: (candidate: DeadLetterCandidate) => boolean
  /** Carry the stack trace. Default false: stacks may hold secrets and cost header space. */
  readonly stack?: boolean
  /** How long the broker keeps a dead letter. Default '14d'. */
  readonly retention?: Duration
}
