import { HEADER_BUDGET_BYTES } from '@redrive/core'
import type { Capabilities } from '@redrive/runtime'

/** 1 year: each delay that a policy allows is one score of a sorted set. */
const LONGEST_MS = 31_536_000_000

export const CAPABILITIES: Capabilities = {
  delay: { kind: 'native', longestMs: LONGEST_MS },
  // A retry or a returned message comes after newer ones.
  ordering: 'none',
  // One script stores the copy and acknowledges the original.
  atomicHandOff: true,
  deliveryCount: 'exact',
  headerBudgetBytes: HEADER_BUDGET_BYTES,
  // The server keeps the ids of replays for a day.
  duplicateReplays: 'discarded',
}
