import type { Capabilities } from '@redrive/runtime'

/** 1 year: each delay that a policy allows is one timestamp. */
const LONGEST_MS = 31_536_000_000
/** 1 MB: the history is a column here, and the policy limits its size. */
const HISTORY_BYTES = 1_048_576

/** The capabilities of the outbox. Consumers that request lane order also keep the order within a lane. */
export const CAPABILITIES: Capabilities = {
  delay: { kind: 'native', longestMs: LONGEST_MS },
  ordering: 'none',
  // A hand-off is one update of the row.
  atomicHandOff: true,
  deliveryCount: 'exact',
  headerBudgetBytes: HISTORY_BYTES,
  // A replay changes the row itself, and the row stores the replay id.
  duplicateReplays: 'discarded',
}

export const LANE_CAPABILITIES: Capabilities = { ...CAPABILITIES, ordering: 'lane' }
