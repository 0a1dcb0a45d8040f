import { HEADER_BUDGET_BYTES } from '@redrive/core'
import type { Capabilities } from '@redrive/runtime'

export const CAPABILITIES: Capabilities = {
  // A day: long enough to be useful, short enough that a test can show a delay that is split.
  delay: { kind: 'native', longestMs: 86_400_000 },
  ordering: 'lane',
  atomicHandOff: false,
  deliveryCount: 'exact',
  headerBudgetBytes: HEADER_BUDGET_BYTES,
}
