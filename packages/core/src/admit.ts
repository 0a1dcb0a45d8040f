import type { Decision } from './decision.ts'
import type { Delivery } from './delivery.ts'
import { CRASH_LOOP, judgeCrashes } from './poison.ts'
import type { Policy } from './policy.ts'

/** Whether a delivery may run, asked before every attempt. */
export type Admission =
  | { readonly kind: 'run' }
  /** Nothing else may run beside it: it is suspected of killing processes. */
  | { readonly kind: 'runAlone' }
  | { readonly kind: 'refused'; readonly decision: Decision }

const RUN: Admission = Object.freeze({ kind: 'run' })
const RUN_ALONE: Admission = Object.freeze({ kind: 'runAlone' })

export interface AdmitInput {
  readonly policy: Policy
  readonly delivery: Pick<Delivery, 'cycle' | 'deliveryCount'>
  readonly now: number
}

/** The common case, told without looking at a clock: a first delivery with nothing against it. */
export function isPlain({ cycle, deliveryCount }: Delivery): boolean {
  return deliveryCount === 1 && cycle.notBefore === undefined
}

export function admit({ policy, delivery, now }: AdmitInput): Admission {
  const { cycle, deliveryCount } = delivery
  if (cycle.notBefore !== undefined && cycle.notBefore > now) {
    const dueAt = cycle.notBefore
    return refused({
      kind: 'retryAt',
      reason: 'not_due',
      dueAt,
      delayMs: dueAt - now,
      cycle,
      failure: undefined,
    })
  }
  if (policy.poison === undefined) return RUN
  switch (judgeCrashes(policy.poison, deliveryCount)) {
    case 'clean':
      return RUN
    case 'suspect':
      return RUN_ALONE
    case 'poison':
      return refused({ kind: 'quarantine', reason: 'crash_loop', failure: CRASH_LOOP, cycle })
  }
}

const refused = (decision: Decision): Admission => ({ kind: 'refused', decision })
