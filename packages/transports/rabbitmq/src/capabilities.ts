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

export const capabilitiesOf = (type: QueueType): Capabilities =>
  type === 'quorum' ? CAPABILITIES : { ...CAPABILITIES, deliveryCount: 'none' }
