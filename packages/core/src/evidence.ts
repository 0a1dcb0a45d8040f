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
  /** Time since the last failure of the message, or since this run began. See `waitedMs`. */
  readonly waitedMs: number
  readonly now: number
}

/**
 * Returns the cause of a failure. The checks run in this order:
 *
 * | check                                                                     | cause      |
 * |---------------------------------------------------------------------------|------------|
 * | the failure is a rejection or an unreadable body                          | message    |
 * | the breaker is open, opened by this message alone, which failed before    | unproven   |
 * | the breaker is open                                                       | dependency |
 * | many messages fail together, and another message passed while this waited | unproven   |
 * | many messages fail together                                               | dependency |
 * | it is the first failure of the message                                    | message    |
 * | another message passed while this one waited                              | message    |
 * | otherwise                                                                 | unproven   |
 *
 * A probe of a half-open breaker proves less when another probe passed while it waited, or when only
 * messages fail that failed before. Its failure is then unproven.
 */
export function findCause(input: EvidenceInput): Cause {
  const { policy, failure, cycle, after, now } = input
  if (failure.class !== 'transient' && failure.class !== 'unknown') return 'message'
  if (after.breaker.phase !== 'closed') return causeWhileOpen(input)
  if (policy.outage === undefined) return 'message'
  const isLimited = policy.retry.unproven !== undefined && cycle.runs > 0
  const othersPassed = hasServedOthers(after.outage, input.waitedMs, now)
  if (isSick(policy.outage, after.outage, now)) {
    return isLimited && othersPassed ? 'unproven' : 'dependency'
  }
  return isLimited && !othersPassed ? 'unproven' : 'message'
}

function causeWhileOpen({ policy, cycle, before, after, waitedMs, now }: EvidenceInput): Cause {
  const { breaker } = before
  const isLimited = policy.retry.unproven !== undefined && cycle.runs > 0
  if (isLimited && isOpenedByOne(after)) return 'unproven'
  if (breaker.phase !== 'open' || breakerPhase(breaker, now) !== 'halfOpen') return 'dependency'
  const isNew = after.breaker !== breaker
  if (policy.retry.unproven === undefined) return isNew ? 'dependency' : 'message'
  if (hasServedOthers(after.outage, waitedMs, now)) return 'unproven'
  return isNew || breaker.freshAt > now - waitedMs ? 'dependency' : 'unproven'
}

/** Returns true when the failures of one message opened the breaker, which is no evidence about others. */
const isOpenedByOne = ({ breaker }: Guards): boolean =>
  breaker.phase === 'open' && breaker.suspects.length === 1

/** 1 s: the start of a run is known to a tick, and may be that much too early. */
const START_PRECISION_MS = 1_000

/**
 * Returns how long the message waited for this failure: its delay, and the run itself. Only times of this
 * process are compared, so differences between clocks have no effect.
 */
export function waitedMs(cycle: FailureCycle, startedAt: number, now: number): number {
  return cycle.lastDelayMs + Math.max(0, now - startedAt - START_PRECISION_MS)
}
