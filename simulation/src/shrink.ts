import { run } from './run.ts'
import type { Scenario } from './scenario.ts'

/**
 * Returns the smallest scenario that still breaks the same promise. It removes faults, messages and
 * processes one by one as long as that helps.
 */
export async function shrink(scenario: Scenario, invariant: string): Promise<Scenario> {
  let smallest = scenario
  for (;;) {
    const smaller = await firstThatBreaks(candidates(smallest), invariant)
    if (smaller === undefined) return smallest
    smallest = smaller
  }
}

async function firstThatBreaks(
  scenarios: Iterable<Scenario>,
  invariant: string,
): Promise<Scenario | undefined> {
  for (const scenario of scenarios) {
    const { violations } = await run(scenario)
    if (violations.some((violation) => violation.invariant === invariant)) return scenario
  }
  return undefined
}

function* candidates(scenario: Scenario): Iterable<Scenario> {
  const { faults, messages, processes, skewMs } = scenario
  for (const index of faults.keys()) yield { ...scenario, faults: faults.toSpliced(index, 1) }
  for (const index of messages.keys()) yield { ...scenario, messages: messages.toSpliced(index, 1) }
  if (processes > 1) yield { ...scenario, processes: processes - 1 }
  if (skewMs.some((skew) => skew !== 0)) yield { ...scenario, skewMs: skewMs.map(() => 0) }
}
