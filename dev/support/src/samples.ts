import { type Delivery, type Failure, FIRST_CYCLE } from '@redrive/core'

/** Returns a failure of an unknown class, with these changes. */
export const aFailure = (changes: Partial<Failure> = {}): Failure => ({
  class: 'unknown',
  signature: `v1-${changes.class ?? 'unknown'}`,
  type: 'Error',
  code: undefined,
  message: 'it broke',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
  ...changes,
})

/** Returns a delivery of the source `orders` that never failed, with these changes. Its key is its id. */
export const aDelivery = (id: string, changes: Partial<Delivery> = {}): Delivery => ({
  id,
  source: 'orders',
  lane: undefined,
  key: id,
  type: undefined,
  bytes: new TextEncoder().encode('{}'),
  contentType: undefined,
  headers: {},
  cycle: FIRST_CYCLE,
  deliveryCount: 1,
  replayId: undefined,
  headerProblems: [],
  ...changes,
})
