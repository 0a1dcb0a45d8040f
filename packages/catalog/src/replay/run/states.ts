export type RunState = 'planned' | 'running' | 'paused' | 'done' | 'cancelled' | 'plan_expired'

export const RUN_STATES: readonly RunState[] = [
  'planned',
  'running',
  'paused',
  'done',
  'cancelled',
  'plan_expired',
]

/**
 * The state of one dead letter in a run. `resolved`: its effect is confirmed. `failed_again`: it failed again.
 * `unknown`: neither happened in time; only a user can allow a repetition. `not_returned`: its consumers confirm
 * nothing, and it was not dead-lettered again in time. `expired`: it will never be handled.
 */
export type ItemState =
  | 'planned'
  | 'skipped'
  | 'queued'
  | 'claimed'
  | 'publishing'
  | 'published'
  | 'resolved'
  | 'failed_again'
  | 'unknown'
  | 'not_returned'
  | 'expired'
  | 'cancelled'

export const ITEM_STATES: readonly ItemState[] = [
  'planned',
  'skipped',
  'queued',
  'claimed',
  'publishing',
  'published',
  'resolved',
  'failed_again',
  'unknown',
  'not_returned',
  'expired',
  'cancelled',
]

export type ItemCounts = Readonly<Record<ItemState, number>>
