import { HEADER_BUDGET_BYTES } from '@redrive/core'
import type { Capabilities } from '@redrive/runtime'
import { LONGEST_STEP_MS, type QueueType, STEPS_MS } from './topology.ts'

/** The capabilities of RabbitMQ. Quorum queues count the deliveries of a message; classic queues do not. */
export const CAPABILITIES: Capabilities = {
  delay: { kind: 'emulated', longestMs: LONGEST_STEP_MS, stepsMs: STEPS_MS },
  ordering: 'none',
  atomicHandOff: false,
  deliveryCount: 'exact',
  headerBudgetBytes: HEADER_BUDGET_BYTES,
}

/**
 * In lane order, messages wait in the process behind an earlier one of their lane. The broker counts each stop as a
 * delivery of all of them, so its count says nothing about one of them.
 */
export const capabilitiesOf = (type: QueueType, order: 'none' | 'lane' = 'none'): Capabilities => ({
  ...CAPABILITIES,
  ordering: order,
  deliveryCount: type === 'quorum' && order === 'none' ? 'exact' : 'none',
})
