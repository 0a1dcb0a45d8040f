import type { Backoff } from './backoff.ts'
import type { BreakerPolicy } from './breaker.ts'
import type { BudgetPolicy } from './budget.ts'
import type { Rule } from './classify/rules.ts'
import type { FailureClass } from './failure.ts'
import type { DeadLetterFilter } from './filter.ts'
import type { FloodPolicy } from './flood.ts'
import type { LimitPolicy } from './limit.ts'
import type { OutagePolicy } from './outage.ts'
import type { PoisonPolicy } from './poison.ts'

/** The resolved policy: validated, complete, immutable, in milliseconds. */
export interface Policy {
  readonly timeoutMs: number
  readonly graceMs: number
  readonly concurrency: number
  readonly order: 'none' | 'lane'
  readonly retry: RetryPolicy
  readonly rules: readonly Rule[]
  readonly breaker: BreakerPolicy | undefined
  readonly onBreakerOpen: 'pause' | 'deadLetter'
  readonly outage: OutagePolicy | undefined
  readonly adaptiveConcurrency: LimitPolicy | undefined
  readonly retryBudget: BudgetPolicy | undefined
  readonly poison: PoisonPolicy | undefined
  readonly flood: FloodPolicy | undefined
  readonly deadLetter: {
    readonly filter: DeadLetterFilter
    readonly includeStack: boolean
    readonly retentionMs: number
  }
}

export interface RetryPolicy {
  readonly minDelayMs: number
  readonly maxAgeMs: number
  readonly maxInlineDelayMs: number
  readonly history: number
  /** Limits of failures without a proven cause; undefined: such a failure counts as an attempt. */
  readonly unproven: UnprovenPolicy | undefined
  readonly classes: Readonly<Record<FailureClass, ClassPolicy>>
}

/** How long and how often a message is tried when nothing proves the cause of its failures. */
export interface UnprovenPolicy {
  readonly maxAgeMs: number
  readonly runs: number
}

export interface ClassPolicy {
  readonly action: 'retry' | 'deadLetter'
  readonly attempts: number
  readonly backoff: Backoff
}

/** The user of the policy: a consumer can leave messages in the broker, the producer behind a sink cannot wait. */
export type PolicyRole = 'consumer' | 'sink'
