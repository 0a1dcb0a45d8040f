import type { FailureCycle, FailureRecord } from '@redrive/core'
import type { ReceivedMessage } from './delivery.ts'
import { nameOf } from './topology.ts'

/** A message that SQS moved to the dead-letter queue, because its consumer did not delete it. */
export interface NativeDeath {
  /** Name of the queue from which SQS moved it. */
  readonly origin: string
  readonly cycle: FailureCycle
}

/** Reads what SQS knows about a message that it moved. Undefined: a program sent the message to the dead-letter queue. */
export function nativeDeathOf(
  { system }: ReceivedMessage,
  cycle: FailureCycle,
  maxReceives: number | undefined,
): NativeDeath | undefined {
  const { DeadLetterQueueSourceArn: arn, SentTimestamp: sentAt } = system
  if (arn === undefined) return undefined
  const runs = Math.max(cycle.runs + 1, maxReceives ?? 1)
  const record: FailureRecord = {
    number: Math.max((cycle.history.at(-1)?.number ?? 0) + 1, runs),
    // SQS does not record when it moved the message.
    at: Number(sentAt ?? 0),
    waitedMs: 0,
    class: 'unknown',
    signature: 'sqs:max_receives',
    code: 'MAX_RECEIVE_COUNT',
    type: undefined,
    message: 'No consumer deleted the message, and maxReceiveCount of the queue is reached.',
    counted: true,
  }
  return {
    origin: nameOf(arn),
    cycle: {
      ...cycle,
      attempts: Math.max(cycle.attempts + 1, runs),
      runs,
      firstFailedAt: cycle.firstFailedAt ?? record.at,
      history: [...cycle.history, record],
    },
  }
}
