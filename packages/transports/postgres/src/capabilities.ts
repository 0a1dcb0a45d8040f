import type { Capabilities } from '@redrive/runtime'

/** A year: any delay a policy allows is one timestamp. */
const LONGEST_MS = 31_536_000_000
/** 1 MB: history is a column here, and its bound is the policy's. */
const HISTORY_BYTES = 1_048_576

/** What the outbox can do. Order within a lane is kept by consumers that ask for it. */
export const CAPABILITIES: Capabilities = {
  delay: { kind: 'native', longestMs: LONGEST_MS },
  ordering: 'none',
  // A hand-off is one update of the row.
  atomicHandOff: true,
  deliveryCount: 'exact',
  headerBudgetBytes: HISTORY_BYTES,
  // A replay changes the row itself, and the row remembers the id.
  duplicateReplays: 'discarded',
}

export const LANE_CAPABILITIES: Capabilities = { ...CAPABILITIES, ordering: 'lane' }
