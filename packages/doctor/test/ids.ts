import { type Check, findIn } from '../src/index.ts'

/** The ids of the checks that find something, each once. */
export const idsIn = <Facts>(checks: readonly Check<Facts>[], facts: Facts): readonly string[] =>
  [...new Set(findIn(checks, facts).map(({ check }) => check))].sort()
