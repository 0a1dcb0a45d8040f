import { type CheckInput, type Counts, of, type Violation, violation } from './evidence.ts'

/** I5: checks that the effects of a lane are in the order of sending. */
export function checkOrder({ facts, scenario }: CheckInput, counts: Counts): readonly Violation[] {
  const found: Violation[] = []
  const place = new Map(
    facts.flatMap((fact, at) => (fact.what === 'sent' ? [[fact.id, at] as const] : [])).reverse(),
  )
  const lanes = new Map(scenario.messages.map((message) => [message.id, message.lane]))
  const last = new Map<string, number>()
  const seen = new Set<string>()
  for (const fact of facts) {
    if (fact.what !== 'effect' || seen.has(fact.id) || of(counts.disruptions, fact.id) > 0) continue
    seen.add(fact.id)
    const lane = lanes.get(fact.id) ?? ''
    const at = place.get(fact.id) ?? 0
    if (at < (last.get(lane) ?? -1))
      found.push(violation('I5', `${fact.id} took effect after a later message of ${lane}`))
    last.set(lane, Math.max(at, last.get(lane) ?? -1))
  }
  return found
}
