import { FIRST_CYCLE, type FailureClass } from '@redrive/core'
import type { StoredDeadLetter } from '@redrive/runtime'

export const START = 1_700_000_000_000

export interface SampleChanges {
  readonly sink?: string
  readonly class?: FailureClass
  readonly savedAt?: number
  readonly body?: string
  readonly job?: string
}

export function deadLetter(id: string, changes: SampleChanges = {}): StoredDeadLetter {
  const { sink = 'loki', savedAt = START, body = id, job } = changes
  return {
    id,
    sink,
    event: {
      id: `event ${id}`,
      key: `key ${id}`,
      type: 'order.paid',
      lane: undefined,
      at: START,
      bytes: Buffer.from(body),
      contentType: 'text/plain',
      headers: {},
    },
    reason: 'attempts_exhausted',
    failure: {
      class: changes.class ?? 'transient',
      signature: 'v1-sample',
      type: 'Error',
      code: 'ECONNREFUSED',
      message: 'refused',
      retryAfterMs: undefined,
      timedOut: false,
      stack: undefined,
    },
    cycle: FIRST_CYCLE,
    job,
    savedAt,
  }
}
