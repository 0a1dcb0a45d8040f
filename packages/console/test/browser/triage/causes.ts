import { randomUUID } from 'node:crypto'
import { type FailureClass, type FailureCycle, FIRST_CYCLE } from '@redrive/core'

export const SOURCES = ['orders', 'payments', 'invoices'] as const
export type SourceName = (typeof SOURCES)[number]
/** Number of dead letters of each source. */
export type Sizes = Readonly<Record<SourceName, number>>

export interface Cause {
  readonly class: FailureClass
  readonly code: string
  /** The error, which is also the title of the group. */
  readonly message: string
  readonly reason: string
  /** The sentence with which the console suggests an action. */
  readonly suggestion: RegExp
  /** The button or link of the suggestion. */
  readonly action: string
}

/** One cause for each source. */
export const CAUSES: Readonly<Record<SourceName, Cause>> = {
  orders: {
    class: 'transient',
    code: 'ECONNREFUSED',
    message: 'connect ECONNREFUSED payments-api',
    reason: 'attempts_exhausted',
    suggestion: /^Replay\. A transient failure, and none for \d+\s(min|h)/,
    action: 'Replay',
  },
  payments: {
    class: 'schema',
    code: 'invalid_type',
    message: 'expected string at /currency',
    reason: 'terminal',
    suggestion: /^Repair\. Unchanged messages fail again\./,
    action: 'Repair',
  },
  invoices: {
    class: 'business',
    code: 'DUPLICATE_INVOICE',
    message: 'invoice is already paid',
    reason: 'terminal',
    suggestion: /^Discard or assign\. A business failure fails again/,
    action: 'Review',
  },
}

/** The change that the console makes in each payment. */
export const PATCH = '[{ "op": "add", "path": "/currency", "value": "EUR" }]'

/** The body of a message. Payments have no currency. */
export interface Body {
  readonly number: number
  readonly currency?: string
}

/** A dead letter as a consumer writes it to its broker. */
export interface Letter {
  readonly id: string
  readonly key: string
  readonly body: string
  /** Time of the failure, epoch ms. */
  readonly at: number
  readonly cycle: FailureCycle
  readonly reason: string
}

/** 10 min: the console suggests a replay after 5 min without a failure. */
const QUIET_MS = 600_000
/** The failures are spread over 20 min. */
const SPREAD_MS = 1_200_000

/** Returns the dead letters of a cause, oldest first. */
export function lettersOf(source: SourceName, count: number): readonly Letter[] {
  const { class: failureClass, code, message, reason } = CAUSES[source]
  const signature = `1-${randomUUID().replaceAll('-', '').slice(0, 16)}`
  const start = Date.now() - QUIET_MS - SPREAD_MS
  return Array.from({ length: count }, (_, number) => {
    const at = Math.round(start + (number / count) * SPREAD_MS)
    const body: Body = source === 'payments' ? { number } : { number, currency: 'CHF' }
    const failure = { class: failureClass, signature, code, type: 'Error', message }
    const history = [{ number: 1, at, waitedMs: 0, ...failure, counted: true }]
    const cycle = { ...FIRST_CYCLE, attempts: 5, runs: 5, firstFailedAt: at, history }
    const key = `${source}-${number}`
    return { id: randomUUID(), key, body: JSON.stringify(body), at, cycle, reason }
  })
}
