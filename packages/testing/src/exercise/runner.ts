/** `describe` and `it` of vitest, node:test or jest. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => unknown
  readonly it: {
    (name: string, test: RunnableTest, timeoutMs?: number): unknown
    /** Reports a test that is not run. Without it, the test name contains the reason. */
    skip?(name: string, test: () => Promise<void>): unknown
    /** Defines a test that runs at the same time as its neighbours; only `isConcurrent` uses it. */
    readonly concurrent?: (name: string, test: RunnableTest, timeoutMs?: number) => unknown
  }
}

/**
 * A test as the suite defines it. The runner may pass its context. `context.skip(reason)`, which vitest and
 * node:test have, reports a test that is skipped while the suite runs.
 */
export type RunnableTest = (context?: unknown) => Promise<void>

/** A skipped scenario, with a reason for the readers of the report. */
export interface SkippedScenario {
  /** Its name, as in the report. */
  readonly scenario: string
  readonly reason: string
}

/** Returns the reasons by scenario name. Throws for an unknown name and for an empty reason. */
export function reasonsOf(
  skip: readonly SkippedScenario[],
  known: readonly string[],
): Map<string, string> {
  for (const { scenario, reason } of skip) {
    if (!known.includes(scenario)) {
      throw new Error(
        `skip: scenario "${scenario}" does not exist. Known scenarios:\n- ${known.join('\n- ')}`,
      )
    }
    if (reason.trim() === '') throw new Error(`skip: scenario "${scenario}" needs a reason`)
  }
  return new Map(skip.map(({ scenario, reason }) => [scenario, reason]))
}

/** Returns how the runner defines concurrent tests; throws when it cannot. */
export function concurrentOf({ it }: TestRunner): TestRunner['it'] {
  const { concurrent } = it
  if (concurrent === undefined) {
    throw new Error('isConcurrent: the test runner has no it.concurrent. Remove the option.')
  }
  return concurrent
}

export function reportSkipped({ it }: TestRunner, scenario: string, reason: string): void {
  const nothing = () => Promise.resolve()
  if (it.skip === undefined) it(`SKIPPED: ${scenario} (${reason})`, nothing)
  else it.skip(`${scenario} (skipped: ${reason})`, nothing)
}

/** Skips the running test with the reason. Throws when the runner cannot skip: a pass would hide the reason. */
export function skipNow(context: unknown, reason: string): void {
  const { skip } = (context ?? {}) as { skip?: unknown }
  if (typeof skip !== 'function') throw new Error(`Not run: ${reason}`)
  Reflect.apply(skip, context, [reason])
}
