import { type Check, findIn } from '../src/index.ts'

/** Returns the ids of the checks with findings, each once. */
export const idsIn = <Facts>(checks: readonly Check<Facts>[], facts: Facts): readonly string[] =>
  [...new Set(findIn(checks, facts).map(({ check }) => check))].sort()
