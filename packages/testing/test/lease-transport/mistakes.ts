/** Mistakes of a first version of a lease-based transport; each breaks one guarantee of the port. */
export const MISTAKES = [
  'owner_unchecked',
  'lease_not_renewed',
  'loss_not_reported',
  'pause_does_not_wait',
  'stack_dropped',
  'handler_dropped',
  'drain_not_exclusive',
  'retry_on_shared_stream',
  'acknowledged_before_copy',
  'refused_copy_counted_as_done',
  'retry_early',
  'replay_not_deduplicated',
  'replay_on_shared_stream',
  'group_shares_cursor',
  'retention_ignored',
  'confirmation_not_stored',
  'claim_script_fails',
  'repeated_copy',
  'lag_counts_delayed',
] as const

export type Mistake = (typeof MISTAKES)[number]
