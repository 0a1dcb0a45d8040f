import { breakerPhase } from './breaker.ts'
import type { FailureCycle } from './delivery.ts'
import type { Failure } from './failure.ts'
import type { Guards } from './guards.ts'
import { hasServedOthers, isSick } from './outage.ts'
import type { Policy } from './policy.ts'

/** What a failed run proves. */
export type Cause =
  /** The message is at fault: others passed while it waited. The run counts as an attempt. */
  | 'message'
  /** The dependency is at fault: others fail too. The run does not count. */
  | 'dependency'
  /** Neither is proven. The run does not count as an attempt, but `retry.unproven` limits such runs. */
  | 'unproven'

/** A failure and the data that its cause depends on. */
export interface EvidenceInput {
  readonly policy: Policy
  readonly failure: Failure
  /** The cycle before this failure. */
  readonly cycle: FailureCycle
  readonly before: Guards
  readonly after: Guards
  readonly now: number
}

/**
 * Returns the cause of a failure. The checks run in this order:
 *
 * | check                                                        | cause      |
 * |--------------------------------------------------------------|------------|
 * | the failure is a rejection or an unreadable body             | message    |
 * | the breaker is open, or many messages fail together          | dependency |
 * | it is the first failure of the message                       | message    |
 * | another message passed while this one waited                 | message    |
 * | otherwise                                                    | unproven   |
 *
 * A probe of a half-open breaker proves less when another probe passed while it waited, or when only
 * messages fail that failed before. Its failure is then unproven.
 */
export function findCause(input: EvidenceInput): Cause {
  const { policy, failure, cycle, after, now } = input
  if (failure.class !== 'transient' && failure.class !== 'unknown') return 'message'
  if (after.breaker.phase !== 'closed') return causeWhileOpen(input)
  if (policy.outage === undefined) return 'message'
  if (isSick(policy.outage, after.outage, now)) return 'dependency'
  if (policy.retry.unproven === undefined || cycle.runs === 0) return 'message'
  return hasServedOthers(after.outage, waitedMs(policy, cycle, failure), now)
    ? 'message'
    : 'unproven'
}

function causeWhileOpen({ policy, failure, cycle, before, after, now }: EvidenceInput): Cause {
  const { breaker } = before
  if (breaker.phase !== 'open' || breakerPhase(breaker, now) !== 'halfOpen') return 'dependency'
  const isNew = after.breaker !== breaker
  if (policy.retry.unproven === undefined) return isNew ? 'dependency' : 'message'
  const waited = waitedMs(policy, cycle, failure)
  if (hasServedOthers(after.outage, waited, now)) return 'unproven'
  return isNew || breaker.freshAt > now - waited ? 'dependency' : 'unproven'
}

/**
 * Returns how long the message waited for this failure: its delay, and the run itself when it timed out.
 * Only times of this process are compared, so differences between clocks have no effect.
 */
export function waitedMs(policy: Policy, cycle: FailureCycle, failure: Failure): number {
  return cycle.lastDelayMs + (failure.timedOut ? policy.timeoutMs : 0)
}
