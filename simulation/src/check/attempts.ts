import { isUnfinished } from '@redrive/runtime/internal'
import type { Fact } from '../history.ts'
import { MAX_ATTEMPTS, type Scenario } from '../scenario.ts'
import { type CheckInput, type Counts, of, type Violation, violation } from './evidence.ts'

/** I3: checks that attempts are counted, and within the limit. */
export function checkAttempts(
  { facts, scenario }: CheckInput,
  counts: Counts,
): readonly Violation[] {
  const found: Violation[] = []
  const failures = new Map<string, number>()
  for (const fact of facts) {
    if (fact.what === 'attempt' && fact.number > MAX_ATTEMPTS) {
      found.push(violation('I3', `${fact.id}: attempt ${fact.number} of at most ${MAX_ATTEMPTS}`))
    }
    if (fact.what === 'event' && fact.event.type === 'attempt_failed' && fact.event.counted) {
      const key = `${fact.event.deliveryId} attempt ${fact.event.attemptNumber}`
      failures.set(key, (failures.get(key) ?? 0) + 1)
    }
  }
  for (const [key, count] of failures) {
    const id = key.slice(0, key.indexOf(' '))
    const copies = of(counts.sent, id) + of(counts.disruptions, id)
    const allowed = copies + lostAttempts(scenario, facts, id, copies)
    if (count > allowed)
      found.push(violation('I3', `${key}: counted ${count} times, ${allowed} explained`))
  }
  return [...found, ...checkOutageAttempts(facts)]
}

/**
 * Counts attempts that may be lost. In order, a returned message keeps its position and loses the
 * attempts that only this process knew. A stop during a hand-off without a response leaves every
 * copy unchanged; a disruption can have made another copy.
 */
export function lostAttempts(
  scenario: Scenario,
  facts: readonly Fact[],
  id: string,
  copies: number,
): number {
  const enacted = facts.flatMap((fact) =>
    fact.what === 'event' && fact.event.type === 'enacted' && fact.event.deliveryId === id
      ? [fact.event]
      : [],
  )
  const returns = enacted.filter(({ decision }) => decision.kind === 'pause').length
  const isUnanswered = enacted.some(({ enactment }) => isUnfinished(enactment))
  const stops = scenario.faults.filter((fault) => fault.kind === 'redeploy').length
  return (scenario.isOrdered ? returns : 0) + (isUnanswered ? stops * copies : 0)
}

/**
 * Checks that attempts during a full outage count only until the breaker opens: five in a row per
 * process.
 */
function checkOutageAttempts(facts: readonly Fact[]): readonly Violation[] {
  const found: Violation[] = []
  let isOpen = false
  for (const fact of facts) {
    if (fact.what === 'started') isOpen = false
    if (fact.what !== 'event') continue
    const { event } = fact
    if (event.type === 'breaker_changed') isOpen = event.to === 'open'
    if (
      event.type === 'attempt_failed' &&
      event.counted &&
      isOpen &&
      event.class === 'transient' &&
      soleProcess(facts)
    ) {
      found.push(
        violation('I8', `${event.deliveryId}: an attempt was counted while the breaker was open`),
      )
    }
  }
  return found
}

function soleProcess(facts: readonly Fact[]): boolean {
  return facts.every((fact) => fact.what !== 'attempt' || fact.process === 0)
}
