/** `describe` and `it` of vitest, node:test or jest. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => unknown
  readonly it: {
    (name: string, test: RunnableTest, timeoutMs?: number): unknown
    /** How to report a test that is not run. Without it, the name says so. */
    skip?(name: string, test: () => Promise<void>): unknown
    /** Defines a test that runs at the same time as its neighbours; only `isConcurrent` uses it. */
    readonly concurrent?: (name: string, test: RunnableTest, timeoutMs?: number) => unknown
  }
}

/**
 * A test as the suite defines it. The runner may pass its context; `context.skip(reason)`, as vitest and
 * node:test have it, reports a test that is skipped while the suite runs.
 */
export type RunnableTest = (context?: unknown) => Promise<void>

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

/** Returns how the runner defines concurrent tests; throws when it cannot. */
export function concurrentOf({ it }: TestRunner): TestRunner['it'] {
  const { concurrent } = it
  if (concurrent === undefined) {
    throw new Error('isConcurrent: the test runner has no it.concurrent. Leave the option out.')
  }
  return concurrent
}

export function reportSkipped({ it }: TestRunner, scenario: string, reason: string): void {
  const nothing = () => Promise.resolve()
  if (it.skip === undefined) it(`SKIPPED: ${scenario} (${reason})`, nothing)
  else it.skip(`${scenario} (skipped: ${reason})`, nothing)
}

/** Skips the running test with the reason. Rejects where the runner cannot: a pass would hide the reason. */
export function skipNow(context: unknown, reason: string): void {
  const { skip } = (context ?? {}) as { skip?: unknown }
  if (typeof skip !== 'function') throw new Error(`Not played: ${reason}`)
  Reflect.apply(skip, context, [reason])
}
