import type { PolicyOptions } from '@redrive/core'

/** What every consumer process is told, whatever it consumes from; it travels as JSON. */
export interface ConsumerOptions {
  /** Names the process and its history file. */
  readonly name: string
  readonly folder: string
  readonly run: string
  readonly databaseUrl: string
  readonly queues: readonly string[]
  readonly policy: JsonPolicy
  /** How long the handler works on a message. */
  readonly workMs: number
  /** Whether messages of the kind `outage` find their dependency down. */
  readonly isDependencyDown?: boolean
}

/** The part of a policy that is plain data. */
export type JsonPolicy = Omit<PolicyOptions, 'classify' | 'deadLetter'>

/**
 * Retries come back within seconds and always by way of the server, because that way is under test.
 * The guards that look at failures are off: when the load is over and only what fails on purpose is
 * left, they would rightly take it for an outage and wait. What they conclude is the simulator's subject.
 */
export const POLICY: JsonPolicy = {
  concurrency: 20,
  retry: {
    attempts: 8,
    backoff: { kind: 'exponential', base: '200ms', cap: '2s' },
    inlineBelow: 0,
  },
  breaker: 'off',
  outage: 'off',
  budget: 'off',
  flood: 'off',
}

/** What the harness asks a consumer process. */
export type Request = 'stop' | 'stats'

/** What a consumer process answers. */
export type Answer = { readonly kind: 'ready' } | { readonly kind: 'stats'; readonly busy: number }
