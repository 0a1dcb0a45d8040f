import { HEADER_BUDGET_BYTES } from '@redrive/core'
import type { Capabilities } from '@redrive/runtime'
import { LONGEST_TIER_MS, TIERS_MS } from './topology.ts'

/** The capabilities of Kafka. Consumers that request lane order also keep the order within a key. */
export const CAPABILITIES: Capabilities = {
  delay: { kind: 'emulated', longestMs: LONGEST_TIER_MS, stepsMs: TIERS_MS },
  ordering: 'none',
  atomicHandOff: false,
  deliveryCount: 'exact',
  headerBudgetBytes: HEADER_BUDGET_BYTES,
}

export const capabilitiesOf = (mode: {
  readonly order: 'none' | 'lane'
  readonly isTransactional: boolean
}): Capabilities => ({
  ...CAPABILITIES,
  ordering: mode.order,
  atomicHandOff: mode.isTransactional,
})
