import { isUnfinished } from '@redrive/runtime/internal'
import { type CheckInput, type Counts, of, type Violation, violation } from './evidence.ts'

/**
 * I8: checks that a message that was in flight at two deaths runs alone. When it kills again, the
 * process holds nothing else, except messages that the broker refuses to take back.
 */
export function checkTrials({ facts }: CheckInput, counts: Counts): readonly Violation[] {
  const found: Violation[] = []
  const deaths = new Map<string, number>()
  const refused = new Set<string>()
  for (const fact of facts) {
    if (fact.what === 'event' && fact.event.type === 'enacted') {
      const { deliveryId, enactment } = fact.event
      // Permanently, because another copy of it may have been stored.
      if (isUnfinished(enactment)) refused.add(deliveryId)
    }
    if (fact.what === 'disrupted' && fact.why === 'process died') {
      deaths.set(fact.id, of(deaths, fact.id) + 1)
    }
    if (fact.what !== 'died' || fact.handling === undefined) continue
    if (of(deaths, fact.handling) < 2 || of(counts.sent, fact.handling) > 1) continue
    const others = fact.inFlight.filter(
      (id) => id !== fact.handling && !refused.has(id) && of(counts.sent, id) === 1,
    )
    if (others.length > 0) {
      const text = `${fact.handling}, a suspect, killed a process that also held ${others.join(' ')}`
      found.push(violation('I8', text))
    }
  }
  return found
}
