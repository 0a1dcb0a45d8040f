import { countRun } from './cycle.ts'
import type { Decision, Quarantine } from './decision.ts'
import type { Delivery, FailureCycle } from './delivery.ts'
import { CRASH_LOOP, judgeCrashes } from './poison.ts'
import type { Policy } from './policy.ts'

/** The result of the check before each attempt: may this delivery run? */
export type Admission =
  | { readonly kind: 'run' }
  /** Run it while no other delivery runs: it is suspected of crashing processes. */
  | { readonly kind: 'runAlone' }
  | { readonly kind: 'refused'; readonly decision: Decision }

const RUN: Admission = Object.freeze({ kind: 'run' })
const RUN_ALONE: Admission = Object.freeze({ kind: 'runAlone' })

export interface AdmitInput {
  readonly policy: Policy
  readonly delivery: Pick<Delivery, 'cycle' | 'deliveryCount'>
  readonly now: number
}

/** Returns true for the common case: a first delivery that is not a split retry. Such a delivery may always run. */
export function isPlain({ cycle, deliveryCount }: Delivery): boolean {
  return deliveryCount === 1 && cycle.remainingMs === 0
}

export function admit({ policy, delivery, now }: AdmitInput): Admission {
  const { cycle, deliveryCount } = delivery
  const delayMs = cycle.remainingMs
  if (delayMs > 0) {
    const dueAt = now + delayMs
    return refused({
      kind: 'retryAt',
      reason: 'not_due',
      dueAt,
      delayMs,
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
      return refused(crashLoop(policy, cycle, now))
  }
}

/** The crashes are one failure in the history: how many of them this message caused is unknown. */
function crashLoop(policy: Policy, before: FailureCycle, now: number): Quarantine {
  const failure = CRASH_LOOP
  const cycle = countRun(before, { policy, failure, now, waitedMs: 0 }, 'message')
  return { kind: 'quarantine', reason: 'crash_loop', failure, cycle }
}

const refused = (decision: Decision): Admission => ({ kind: 'refused', decision })
