/** `describe` and `it` of vitest, node:test or jest. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => unknown
  readonly it: {
    (name: string, test: () => Promise<void>, timeoutMs?: number): unknown
    /** How to report a test that is not run. Without it, the name says so. */
    skip?(name: string, test: () => Promise<void>): unknown
  }
}

/** A scenario that is left out, with the reason a reader of the report deserves. */
export interface SkippedScenario {
  /** Its name, as in the report. */
  readonly scenario: string
  readonly reason: string
}

/** Reasons by the name of the scenario; refuses a name nobody has and a reason that says nothing. */
export function reasonsOf(
  skip: readonly SkippedScenario[],
  known: readonly string[],
): Map<string, string> {
  for (const { scenario, reason } of skip) {
    if (!known.includes(scenario)) {
      throw new Error(
        `skip: there is no scenario '${scenario}'. There are:\n- ${known.join('\n- ')}`,
      )
    }
    if (reason.trim() === '') throw new Error(`skip: '${scenario}' needs a reason`)
  }
  return new Map(skip.map(({ scenario, reason }) => [scenario, reason]))
}

export function reportSkipped({ it }: TestRunner, scenario: string, reason: string): void {
  const nothing = () => Promise.resolve()
  if (it.skip === undefined) it(`SKIPPED: ${scenario} (${reason})`, nothing)
  else it.skip(`${scenario} (skipped: ${reason})`, nothing)
}
