import { lostAttempts } from './attempts.ts'
import { type CheckInput, type Counts, of, type Violation, violation } from './evidence.ts'

/** I4: checks that a retry does not run before its delay has passed. */
export function checkNeverEarly(
  { facts, scenario }: CheckInput,
  counts: Counts,
): readonly Violation[] {
  const found: Violation[] = []
  // With several copies in flight, a decision cannot be assigned to one of them.
  const isSingle = (id: string) =>
    of(counts.sent, id) === 1 &&
    of(counts.disruptions, id) === 0 &&
    lostAttempts(scenario, facts, id, 1) === 0
  const due = new Map<string, number[]>()
  const plan = (id: string, number: number, at: number) => {
    const key = `${id} ${number}`
    due.set(key, [...(due.get(key) ?? []), at])
  }
  const failed = new Map<string, { readonly at: number; readonly number: number }>()
  for (const fact of facts) {
    const event = fact.what === 'event' ? fact.event : undefined
    if (event?.type === 'attempt_failed') {
      const number = event.attemptNumber + (event.counted ? 1 : 0)
      failed.set(event.deliveryId, { at: fact.at, number })
    }
    // Measured from the failure, which is before the hand-off, so the check is never too strict.
    if (event?.type === 'inline_retry') {
      const { at, number } = failed.get(event.deliveryId) ?? { at: fact.at, number: 1 }
      plan(event.deliveryId, number, at + event.delayMs)
    }
    if (event?.type === 'enacted' && event.decision.kind === 'retryAt') {
      const { cycle, delayMs, reason } = event.decision
      const from = failed.get(event.deliveryId)?.at ?? fact.at
      // A later part of a delay: the first part planned the whole delay.
      if (reason === 'not_due') continue
      plan(event.deliveryId, cycle.attempts + 1, from + delayMs + cycle.remainingMs)
    }
    if (fact.what === 'attempt' && fact.number > 1 && isSingle(fact.id)) {
      const planned = due.get(`${fact.id} ${fact.number}`)
      if (planned !== undefined && planned.every((at) => at > fact.at)) {
        found.push(
          violation(
            'I4',
            `${fact.id}: attempt ${fact.number} ran ${Math.min(...planned) - fact.at} ms early`,
          ),
        )
      }
    }
  }
  return found
}
