import { checkAlive } from './alive.ts'
import { checkAttempts } from './attempts.ts'
import { checkDeadLetters, checkReports } from './dead-letters.ts'
import { type CheckInput, countAll, type Violation, violation } from './evidence.ts'
import { checkNeverEarly } from './never-early.ts'
import { checkOrder } from './order.ts'
import { checkOwned } from './owned.ts'
import { checkPlaces } from './places.ts'
import { checkTrials } from './trials.ts'

/**
 * Compares the history with the promises. It uses no knowledge of the implementation.
 *
 * | I1 | every accepted message ends in exactly one place: effect, dead letter or quarantine |
 * | I2 | a disruption explains each copy or effect beyond one; with the inbox, never two effects |
 * | I3 | counted attempts stay within the limit and every counted failure moves the count |
 * | I4 | no retry runs before its time |
 * | I5 | in order, the effects of a lane come in the order they were sent |
 * | I6 | after all faults have ended, everything drains |
 * | I7 | reports match what happened: every reported dead letter exists |
 * | I8 | a good message is never dead-lettered |
 * | I9 | a process never runs a message while an earlier run of it is alive |
 * | I10 | a process never runs a message that the broker has taken back |
 */
export function checkRun(input: CheckInput): readonly Violation[] {
  const counts = countAll(input)
  return [
    ...checkPlaces(input, counts),
    ...checkAttempts(input, counts),
    ...checkAlive(input, counts),
    ...checkOwned(input),
    ...checkNeverEarly(input, counts),
    ...checkTrials(input, counts),
    ...(input.scenario.isOrdered ? checkOrder(input, counts) : []),
    ...(input.isDrained
      ? []
      : [violation('I6', `not drained: ${input.left.map((one) => one.id).join(' ')}`)]),
    ...checkReports(input),
    ...checkDeadLetters(input),
  ]
}
