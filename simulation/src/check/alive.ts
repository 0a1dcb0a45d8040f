import { LATE } from '../history.ts'
import { type CheckInput, type Counts, of, type Violation, violation } from './evidence.ts'

/** I9: checks that a process never runs a message while an earlier run of it is alive. */
export function checkAlive({ facts }: CheckInput, counts: Counts): readonly Violation[] {
  const found: Violation[] = []
  const alive = new Map<number, Set<string>>()
  const copied = new Set<string>()
  for (const fact of facts) {
    if (fact.what === 'started') alive.set(fact.process, new Set())
    if (fact.what === 'ended') alive.get(fact.process)?.delete(fact.id)
    // A message that was sent twice, or disrupted during a hand-off, may exist twice: both copies may run.
    if (fact.what === 'disrupted' && fact.why !== LATE) copied.add(fact.id)
    if (fact.what !== 'attempt' || of(counts.sent, fact.id) > 1 || copied.has(fact.id)) continue
    const running = alive.get(fact.process)
    if (running?.has(fact.id)) {
      found.push(violation('I9', `${fact.id} runs twice at the same time in p${fact.process}`))
    }
    running?.add(fact.id)
  }
  return found
}
