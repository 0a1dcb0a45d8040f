import type { Capabilities } from '@redrive/runtime'

/** 15 minutes, the limit of SQS. The core splits longer delays: the message is delayed again for the rest. */
const LONGEST_DELAY_MS = 900_000
/** 8 KiB, as on most brokers. Headers and body share the size limit of the queue, 1 MiB by default. */
export const HEADER_BUDGET_BYTES = 8_192

const COMMON = {
  // The copy and the deletion of the original are two requests.
  atomicHandOff: false,
  headerBudgetBytes: HEADER_BUDGET_BYTES,
} as const

/**
 * The capabilities of a queue.
 *
 * A FIFO queue delays no single message, so its retries wait in the process. Its messages are returned in place, and
 * SQS counts a return like a crash: the count is not usable.
 */
export const capabilitiesOf = (isFifo: boolean): Capabilities =>
  isFifo
    ? { ...COMMON, delay: { kind: 'none' }, ordering: 'lane', deliveryCount: 'none' }
    : {
        ...COMMON,
        delay: { kind: 'native', longestMs: LONGEST_DELAY_MS },
        ordering: 'none',
        deliveryCount: 'exact',
      }
