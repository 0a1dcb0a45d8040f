import type { PolicyOptions } from '@redrive/core'

/** Options of every consumer process, sent as JSON. */
export interface ConsumerOptions {
  /** Name of the process and of its history file. */
  readonly name: string
  readonly folder: string
  readonly run: string
  readonly databaseUrl: string
  readonly queues: readonly string[]
  readonly policy: JsonPolicy
  /** How long the handler works on a message. */
  readonly workMs: number
  /** Whether the dependency is down for messages of the kind `outage`. */
  readonly isDependencyDown?: boolean
  readonly clock?: WrongClock
}

/** A wall clock that is wrong from the start and jumps. */
export interface WrongClock {
  readonly aheadMs: number
  /** Size of its jumps, forward and back in turn. */
  readonly jumpMs: number
  readonly everyMs: number
}

/** The part of a policy that is plain data. */
export type JsonPolicy = Omit<PolicyOptions, 'classify' | 'deadLetter'>

/**
 * Retries come back within seconds and always through the server, because that way is under test.
 * The guards that watch failures are off. At the end of the load only intended failures are left,
 * and the guards would correctly treat them as an outage. The simulator tests the guards.
 */
export const POLICY: JsonPolicy = {
  concurrency: 20,
  retry: {
    attempts: 8,
    backoff: { kind: 'exponential', base: '200ms', cap: '2s' },
    maxInlineDelay: 0,
  },
  breaker: 'off',
  outage: 'off',
  retryBudget: 'off',
  flood: 'off',
}

/** A request from the harness to a consumer process. */
export type Request = 'stop' | 'stats'

/** A response of a consumer process. */
export type Answer = { readonly kind: 'ready' } | { readonly kind: 'stats'; readonly busy: number }
