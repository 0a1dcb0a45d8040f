import { HEADER_BUDGET_BYTES } from '@redrive/core'
import type { Capabilities } from '@redrive/runtime'

export const CAPABILITIES: Capabilities = {
  delay: { kind: 'native', longestMs: 86_400_000 },
  ordering: 'none',
  // One script ends the lease and stores the copy.
  atomicHandOff: true,
  deliveryCount: 'exact',
  headerBudgetBytes: HEADER_BUDGET_BYTES,
  duplicateReplays: 'discarded',
}
