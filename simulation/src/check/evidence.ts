import type { MemoryMessage } from '@redrive/memory'
import type { Fact } from '../history.ts'
import type { Scenario } from '../scenario.ts'

export interface Violation {
  /** The broken invariant: I1 … I10. */
  readonly invariant: string
  readonly text: string
}

export interface CheckInput {
  readonly scenario: Scenario
  readonly facts: readonly Fact[]
  readonly isDrained: boolean
  readonly left: readonly MemoryMessage[]
  readonly deadLetters: readonly MemoryMessage[]
  readonly quarantined: readonly MemoryMessage[]
}

export const violation = (invariant: string, text: string): Violation => ({ invariant, text })

/** How often each message was sent, took effect and so on, by its id. */
export interface Counts {
  readonly sent: ReadonlyMap<string, number>
  readonly effects: ReadonlyMap<string, number>
  readonly disruptions: ReadonlyMap<string, number>
  readonly deadLetters: ReadonlyMap<string, number>
  readonly quarantined: ReadonlyMap<string, number>
}

export function countAll({ facts, deadLetters, quarantined }: CheckInput): Counts {
  const countFacts = (what: 'sent' | 'effect' | 'disrupted') =>
    tally(facts.flatMap((fact) => (fact.what === what ? [fact.id] : [])))
  return {
    sent: countFacts('sent'),
    effects: countFacts('effect'),
    disruptions: countFacts('disrupted'),
    deadLetters: tally(deadLetters.map((one) => one.id)),
    quarantined: tally(quarantined.map((one) => one.id)),
  }
}

function tally(ids: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** Returns the count of one message. */
export const of = (counts: ReadonlyMap<string, number>, id: string): number => counts.get(id) ?? 0
