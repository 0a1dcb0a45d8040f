import type { Capabilities } from '@redrive/runtime'

/** 1 year: each delay that a policy allows is one timestamp. */
const LONGEST_MS = 31_536_000_000
/** 4 KiB: headers and body share the limit `max_payload` of the server, 1 MB by default. */
const HEADER_BUDGET_BYTES = 4_096

/** The capabilities of JetStream. The server stores a delayed message with the time of its delivery. */
export const CAPABILITIES: Capabilities = {
  delay: { kind: 'native', longestMs: LONGEST_MS },
  ordering: 'none',
  // The copy and the acknowledgement of the original are two requests.
  atomicHandOff: false,
  deliveryCount: 'exact',
  headerBudgetBytes: HEADER_BUDGET_BYTES,
}
