import assert from 'node:assert/strict'
import type { Enactment } from '@redrive/runtime'
import { isUnfinished } from '@redrive/runtime/internal'
import { describeError } from './describe-error.ts'

/** The number of messages in the source and in the dead-letter queue. */
export interface Places {
  readonly backlog: number
  readonly deadLetters: number
}

/** Describes a wrong count: messages are missing, too many, or in the wrong queue. */
export function describeCounts(seen: unknown, expected: Places): string {
  if (seen instanceof Error) return `messages cannot be counted: ${describeError(seen)}`
  const found = seen as Places
  const surplus = found.backlog + found.deadLetters - expected.backlog - expected.deadLetters
  const verdict =
    surplus === 0
      ? 'in the wrong queue'
      : `${Math.abs(surplus)} ${surplus < 0 ? 'missing' : 'too many'}`
  return `messages: ${verdict} (expected ${countsText(expected)}, found ${countsText(found)})`
}

const countsText = ({ backlog, deadLetters }: Places) =>
  `${backlog} in the source and ${deadLetters} dead`

/** Asserts that a copy that the broker rejected is not reported as done. */
export function assertNotStored(enactment: Enactment, what: string): void {
  const message = `${what} that the broker rejected is unknown or refused, not ${enactment.kind}`
  assert.ok(isUnfinished(enactment), message)
}
