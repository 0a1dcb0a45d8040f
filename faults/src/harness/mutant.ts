import type { Rule } from '../evidence/evidence.ts'
import type { Scenario } from './scenario.ts'

/** One change to a Redrive source file. The text to find must occur at least once. */
export type Edit = readonly [file: string, find: string, replace: string]

/**
 * A realistic mistake, as changes to Redrive's source. The named scenario must fail with it, for
 * the named reason. A mutant that survives shows a gap in the harness.
 */
export type Mutant = readonly [
  name: string,
  scenario: string,
  breaks: Rule,
  ...edits: readonly Edit[],
]

/** The mutants of a subject, and the scenarios that may find them. */
export interface Prey {
  readonly name: string
  readonly mutants: readonly Mutant[]
  readonly scenarios: readonly Scenario[]
  /** The servers that its mutants need, as named in `dev/services`. */
  readonly services: readonly string[]
}
