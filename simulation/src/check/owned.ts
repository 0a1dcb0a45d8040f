import { type CheckInput, type Violation, violation } from './evidence.ts'

/** I10: checks that a process runs only messages that it owns. The broker may have taken a delivery back. */
export function checkOwned({ facts }: CheckInput): readonly Violation[] {
  const found: Violation[] = []
  const owned = new Map<number, Map<string, number>>()
  for (const fact of facts) {
    if (fact.what === 'started') owned.set(fact.process, new Map())
    if (fact.what !== 'owned' && fact.what !== 'attempt') continue
    const ofProcess = owned.get(fact.process)
    const count = ofProcess?.get(fact.id) ?? 0
    if (fact.what === 'owned') ofProcess?.set(fact.id, count + fact.change)
    else if (count <= 0) {
      found.push(violation('I10', `p${fact.process} runs ${fact.id} and does not own it`))
    }
  }
  return found
}
