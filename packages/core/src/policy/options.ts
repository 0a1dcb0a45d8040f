import type { BackoffOptions } from '../backoff.ts'
import type { Rule } from '../classify/rules.ts'
import type { Duration } from '../duration.ts'
import type { FailureClass } from '../failure.ts'
import type { DeadLetterCandidate, Matcher } from '../filter.ts'

/** How to handle failures. Everything is optional; every default is safe. */
export interface PolicyOptions {
  /** Longest run of one attempt; its AbortSignal fires then ('1ms'–'12h', default '30s'). See `grace`. */
  readonly timeout?: Duration
  /**
   * Time that a handler has to end after its signal fired ('0ms'–'5m', default '5s'). Then its message is retried
   * without it. A handler that still runs counts against `concurrency` until it ends.
   */
  readonly grace?: Duration
  /** Maximum attempts in flight in this process (1–10,000, default 50). The adaptive limit stays below it. */
  readonly concurrency?: number
  /** 'lane': a message waits for the earlier messages of its lane, including their retries. Default 'none'. */
  readonly order?: 'none' | 'lane'
  /** When and how often a failed message is tried again. */
  readonly retry?: RetryOptions
  /** Your own rules for the class of a failure. They are tried in order, before the built-in rules. Default: none. */
  readonly classify?: readonly Rule[]
  /** Stops calling a dependency that is down. Default: on. */
  readonly breaker?: 'off' | BreakerOptions
  /** What happens to messages while the breaker is open. Default 'pause' for consumers, 'deadLetter' for sinks. */
  readonly onBreakerOpen?: 'pause' | 'deadLetter'
  /** Distinguishes an unhealthy dependency from a bad message. When off, every failed attempt counts. Default: on. */
  readonly outage?: 'off' | OutageOptions
  /** Lowers the number of attempts in flight while a dependency is overloaded. Default: on. */
  readonly adaptiveConcurrency?: 'off' | LimitOptions
  /** How many retries are allowed, in relation to successes. Default: on. */
  readonly retryBudget?: 'off' | BudgetOptions
  /** When a message counts as poison and is quarantined. Default: on. */
  readonly poison?: 'off' | PoisonOptions
  /** Slows many similar dead letters, so that an operator can react before the source is empty. Default: on. */
  readonly flood?: 'off' | FloodOptions
  /** Which messages are kept as dead letters, and for how long. */
  readonly deadLetter?: DeadLetterOptions
}

export interface RetryOptions {
  /**
   * Maximum counted attempts, including the first one (1–1,000, default 5, sinks 3). A failed run
   * counts when other messages pass while it waits: see `outage` and `unproven`.
   */
  readonly attempts?: number
  /** Delays between attempts. Default: exponential from 1 s to 60 s with full jitter, for sinks from 100 ms to 5 s. */
  readonly backoff?: BackoffOptions
  /** Shortest delay, also after jitter ('1ms'–'1h', default '10ms'). */
  readonly minDelay?: Duration
  /** A message whose first failure is older is given up ('0ms'–'366d', default '14d'). */
  readonly maxAge?: Duration
  /**
   * Limits of failures without a proven cause: no other message passed or failed while this one waited.
   * Then it becomes a dead letter with the reason `unproven`. `'off'`: such a failure counts as an attempt.
   * Default: on, for sinks 'off'.
   */
  readonly unproven?: 'off' | UnprovenOptions
  /** Shorter waits happen in the process, longer ones on the broker ('0ms'–'5m', default '1s'). */
  readonly maxInlineDelay?: Duration
  /** Failures kept with the message (1–100, default 10). The oldest uncounted one is omitted first. */
  readonly history?: number
  /** Per failure class: retry or give up immediately, other attempts, other backoff. */
  readonly classes?: Partial<Readonly<Record<FailureClass, ClassOptions>>>
}

export interface UnprovenOptions {
  /**
   * Longest time that a message waits for such runs, all waits added ('1s'–'366d', default '1h'). If the dependency
   * requests a wait that is longer than each delay of the policy, only the delay that it replaces counts.
   */
  readonly maxAge?: Duration
  /** Maximum number of such runs (2–10,000, default 20). */
  readonly runs?: number
}

export interface ClassOptions {
  /** Whether to retry or to give up immediately. Default 'retry' for transient and unknown, 'deadLetter' for schema, business and integration. */
  readonly action?: 'retry' | 'deadLetter'
  /** Maximum counted attempts of this class (1–1,000). Default: `retry.attempts`. */
  readonly attempts?: number
  /** Delays between attempts of this class. Default: `retry.backoff`. */
  readonly backoff?: BackoffOptions
}

export interface BreakerOptions {
  /**
   * What opens the breaker: `consecutive` failures, or a `ratio` of failures in a window. Default
   * `{ kind: 'consecutive', failures: 5 }`.
   */
  readonly trip?:
    | {
        readonly kind: 'consecutive'
        /** Failures in a row (1–10,000, default 5). */
        readonly failures?: number
      }
    | {
        readonly kind: 'ratio'
        /** Share of outcomes that fail (0.01–1, default 0.5). */
        readonly ratio?: number
        /** Time in which outcomes are counted ('100ms'–'1h', default '30s'). */
        readonly window?: Duration
        /** Outcomes that the window needs before the ratio counts (1–100,000, default 20). */
        readonly minimum?: number
      }
  /** Shortest time open, ±20 % so that a fleet does not probe together ('1ms'–'1h', default '1s'). */
  readonly minOpen?: Duration
  /** Longest time open, ±20 % ('1ms'–'1h', default '30s', sinks '60s'). */
  readonly maxOpen?: Duration
  /** Time open between the two, as a share of the outage so far (0–1, default 0.1). */
  readonly openShare?: number
  /** Concurrent attempts while half-open (1–100, default 1). */
  readonly probes?: number
  /** Successes that close it (1–1,000, default 2). */
  readonly successes?: number
}

export interface OutageOptions {
  /** Share of outcomes that fail together (0.01–1, default 0.25). */
  readonly ratio?: number
  /** Minimum number of messages that fail (2–200, default 5). One message counts once. */
  readonly failures?: number
  /** Time in which outcomes are counted ('100ms'–'1h', default '30s'). */
  readonly window?: Duration
}

export interface LimitOptions {
  /** Initial limit of attempts in flight (1–10,000, default 10). */
  readonly start?: number
  /** Minimum limit (1–10,000, default 1). */
  readonly min?: number
  /** Factor applied on overload (0.1–0.95, default 0.7). */
  readonly decrease?: number
}

export interface BudgetOptions {
  /** Retries per success (0–10, default 0.1). */
  readonly ratio?: number
  /** Retries per second allowed without any success (0–100,000, default 10). */
  readonly floorPerSecond?: number
  /** Maximum retries that can be saved (1–1,000,000, default 100). */
  readonly burst?: number
  /** Maximum retries per second (1–100,000, default 100). */
  readonly ratePerSecond?: number
  /** What happens to retries over budget. Default 'delay': they return in stages. */
  readonly onExceeded?: 'delay' | 'deadLetter' | 'drop'
  /** Stages in which retries over budget return. */
  readonly release?: {
    /** Retries in one stage (1–100,000, default 10). */
    readonly batch?: number
    /** Time between stages ('1ms'–'1h', default '1s'). */
    readonly interval?: Duration
  }
}

export interface PoisonOptions {
  /** Repetitions of the same failure (2–100, default 3). */
  readonly repeats?: number
  /** Time in which they must happen ('0ms'–'366d', default '1d'). */
  readonly window?: Duration
  /** Failure classes that can make a message poison. Default `['unknown']`. */
  readonly classes?: readonly FailureClass[]
  /** After this many deliveries without a settlement, a message is suspect and runs alone (2–100, default 3). */
  readonly suspectDeliveries?: number
  /** Crashes while running alone that make a suspect poison (1–100, default 3). */
  readonly trials?: number
}

export interface FloodOptions {
  /** Similar dead letters allowed in a burst (1–1,000,000, default 100). */
  readonly burst?: number
  /** Similar dead letters per minute after the burst (1–1,000,000, default 60). */
  readonly perMinute?: number
  /** Maximum signatures watched (2–10,000, default 64). */
  readonly signatures?: number
}

export interface DeadLetterOptions {
  /** Messages to drop instead of keeping a dead letter. Default: none. */
  readonly drop?: readonly Matcher[]
  /** Messages to keep always, also when `keepIf` returns false. Default: none. */
  readonly keep?: readonly Matcher[]
  /** Keeps the message when it returns true. Default: keeps every message. */
  readonly keepIf?: (candidate: DeadLetterCandidate) => boolean
  /** Whether to keep the stack trace. Default false: stacks may contain secrets and use header space. */
  readonly includeStack?: boolean
  /** How long the broker keeps a dead letter ('1s'–'3650d', default '14d'). */
  readonly retention?: Duration
}
