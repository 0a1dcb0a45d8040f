import type { PolicyOptions } from '@redrive/core'

/** Every guard is off. A test switches on the guards it needs. */
export const GUARDS_OFF: PolicyOptions = {
  breaker: 'off',
  outage: 'off',
  adaptiveConcurrency: 'off',
  retryBudget: 'off',
  poison: 'off',
  flood: 'off',
}
