import { FIRST_CYCLE } from '@redrive/core'
import type { StoredDeadLetter } from '@redrive/runtime'

export const BODY: string = 'x'.repeat(1_024)
export const SINKS: readonly string[] = ['loki', 'sentry', 'otlp']
/** Saved one millisecond apart; starts at 2026-01-01. */
export const START = 1_767_225_600_000
/** One in 10,000 has the rare job. A list of this job skips all others. */
const RARE = 10_000

export function numbered(number: number): StoredDeadLetter {
  return {
    id: `event-${number}`,
    sink: SINKS[number % SINKS.length] ?? '',
    reason: 'attempts_exhausted',
    job: number % RARE === 0 ? 'rare' : `job ${number % 7}`,
    savedAt: START + number,
    failure: {
      class: 'transient',
      signature: 'v1',
      type: 'Error',
      code: 'ECONNREFUSED',
      message: 'connect ECONNREFUSED',
      retryAfterMs: undefined,
      timedOut: false,
      stack: undefined,
    },
    cycle: FIRST_CYCLE,
    event: {
      id: `event-${number}`,
      key: `event-${number}`,
      type: 'order.paid',
      lane: undefined,
      at: START,
      bytes: Buffer.from(BODY),
      contentType: 'application/json',
      headers: {},
    },
  }
}
