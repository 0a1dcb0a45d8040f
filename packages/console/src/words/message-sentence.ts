import type { DeadLetter } from '@redrive/api'

/** Returns what happened to a message, after its key: does not match the schema of ledger. */
export function messageSentence({
  class: failureClass,
  handler,
  source,
  message,
}: Pick<DeadLetter, 'class' | 'handler' | 'source' | 'message'>): string {
  if (failureClass === 'schema') return `does not match the schema of ${handler ?? source}`
  return message === '' ? 'failed' : `failed: ${message}`
}

/** Words for the reason of a dead letter. */
const REASONS: Readonly<Record<string, string>> = {
  terminal: 'a retry cannot succeed',
  attempts_exhausted: 'all attempts failed',
  unproven: 'it failed too long, and nothing shows whether the message is the cause',
  too_old: 'too old for another attempt',
  over_budget: 'too many retries at that time',
  breaker_open: 'the dependency was down for too long',
  too_large: 'its retry is too large for the broker',
  same_failure_repeated: 'it failed in the same way again and again',
}

/** Returns the reason in words. A reason of another library is shown as it is. */
export const reasonText = (reason: string): string => REASONS[reason] ?? reason
