import { type Duration, parseDuration } from '@redrive/core'
import type { Awaitable, Capabilities } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import { Basics, type PlayedScenario } from './basics.ts'
import { CALLING } from './calling.ts'
import { CONFIRMING } from './confirming.ts'
import { CONTROLLING } from './controlling.ts'
import { CRASHING } from './crashing.ts'
import { DELIVERING } from './delivering.ts'
import { describeError } from './describe-error.ts'
import { GIVING_UP } from './giving-up.ts'
import { KEEPING } from './keeping.ts'
import { HANDING_OVER } from './handing-over.ts'
import { OWNING } from './owning.ts'
import {
  concurrentOf,
  reasonsOf,
  reportSkipped,
  type SkippedScenario,
  type TestRunner,
} from './runner.ts'
import type { Scenario } from './scenario.ts'
import { ScenarioContext } from './scenario-context.ts'
import { STOPPING } from './stopping.ts'
import type { TransportFixture } from './world.ts'

export interface ExerciseOptions<World extends TransportFixture = TransportFixture> {
  readonly runner: TestRunner
  /** Name of the transport in the report, such as `'rabbitmq 4.1, quorum queues'`. */
  readonly name: string
  /** The capabilities that the transport declares. For a missing one the suite checks that it is rejected. */
  readonly capabilities: Capabilities
  /** Creates a new fixture; called for every scenario, and ten times concurrently in the stress run. */
  readonly open: () => Awaitable<World>
  /** Restarts the broker, for all fixtures on it. Without it, that scenario must be skipped with a reason. */
  readonly restartBroker?: (world: World) => Awaitable<void>
  readonly skip?: readonly SkippedScenario[]
  /** Plays only these scenarios, by name, for scenarios that need a separate test file. Default: all. */
  readonly only?: readonly string[]
  /** Maximum time of each wait. Default '30s', because a shared CI machine is slow. */
  readonly deadline?: Duration
  /**
   * Plays scenarios at the same time, through `it.concurrent` of vitest: a broker mostly waits. Default:
   * one after the other.
   */
  readonly isConcurrent?: boolean
}

/** The scenario that restarts the broker, which disturbs other tests on it. */
export const RESTART_SCENARIO: string = 'a broker restart loses nothing'
/** All others concurrently, ten times each: uses a whole machine for minutes. */
export const STRESS_SCENARIO: string = 'stress: the whole list, ten times in parallel'
const STRESS_TIMES = 10
/** 300 fixtures at a time: with more, a broker on a small machine is slower than any deadline. */
const STRESS_WORLDS = 300
const SCENARIOS: readonly Scenario[] = [
  ...DELIVERING,
  ...CALLING,
  ...OWNING,
  ...HANDING_OVER,
  ...GIVING_UP,
  ...CONFIRMING,
  ...CONTROLLING,
  ...KEEPING,
  ...STOPPING,
  ...CRASHING,
]
const DEADLINE_MS = 30_000
/** A scenario has several waits, each with a separate deadline. */
const TEST_DEADLINES = 10
/** Fewer: a call that hangs must fail with its evidence before the runner times out. */
const PLAY_DEADLINES = 7

/**
 * Defines the contract of a transport as a test suite: every guarantee that the runtime relies on, played
 * on a real broker in real time. It checks where each message is, not only that it was removed.
 *
 * ```ts
 * import { describe, it } from 'vitest'
 *
 * exerciseTransport({
 *   runner: { describe, it },
 *   name: 'memory',
 *   capabilities: CAPABILITIES,
 *   open: () => memoryFixture(),
 *   restartBroker: (world) => world.restart(),
 * })
 * ```
 */
export function exerciseTransport<World extends TransportFixture>(
  options: ExerciseOptions<World>,
): void {
  const { runner, name, deadline = DEADLINE_MS, isConcurrent = false } = options
  const deadlineMs = parseDuration(deadline)
  if (deadlineMs === undefined)
    throw new TypeError(`deadline: expected a duration such as '30s', got "${deadline}"`)
  const isChosen = chosenBy(options.only)
  const skipped = skippedScenarios(options)
  const played = SCENARIOS.filter((scenario) => !skipped.has(scenario.name))
  const basics = new Basics()
  const itConcurrent = isConcurrent ? concurrentOf(runner) : runner.it
  const define = (
    scenario: Pick<Scenario, 'name' | 'isBasic' | 'isAlone'>,
    timeoutMs: number,
    run: () => Promise<PlayedScenario>,
  ) => {
    if (!isChosen(scenario.name)) return
    const reason = skipped.get(scenario.name)
    const isAlone = scenario.isBasic ?? scenario.isAlone ?? false
    const add = isAlone ? runner.it : itConcurrent
    if (reason !== undefined) reportSkipped(runner, scenario.name, reason)
    else add(scenario.name, basics.guard(scenario, run), timeoutMs)
  }
  runner.describe(`transport: ${name}`, () => {
    const timeoutMs = deadlineMs * TEST_DEADLINES
    for (const one of SCENARIOS) define(one, timeoutMs, () => play(one, options, deadlineMs))
    define({ name: STRESS_SCENARIO, isAlone: true }, timeoutMs * 2, () =>
      stress(played, options, deadlineMs),
    )
  })
}

const NAMES: readonly string[] = [...SCENARIOS.map((scenario) => scenario.name), STRESS_SCENARIO]

/** Returns whether a scenario is selected. Throws for a name that does not exist. */
function chosenBy(only: readonly string[] = NAMES): (scenario: string) => boolean {
  const unknown = only.find((name) => !NAMES.includes(name))
  if (unknown !== undefined) {
    throw new Error(
      `only: scenario "${unknown}" does not exist. Known scenarios:\n- ${NAMES.join('\n- ')}`,
    )
  }
  return (scenario) => only.includes(scenario)
}

/** Returns the skipped scenarios with their reasons. Throws for invalid names and missing options. */
function skippedScenarios<World extends TransportFixture>({
  skip = [],
  only = NAMES,
  capabilities,
  restartBroker,
}: ExerciseOptions<World>): ReadonlyMap<string, string> {
  const reasons = reasonsOf(skip, NAMES)
  if (
    restartBroker === undefined &&
    only.includes(RESTART_SCENARIO) &&
    !reasons.has(RESTART_SCENARIO)
  ) {
    throw new Error(
      `Option "restartBroker" is missing. Pass it, or skip "${RESTART_SCENARIO}" with a reason.`,
    )
  }
  for (const { name, excuse } of SCENARIOS) {
    const reason = excuse?.(capabilities)
    if (reason !== undefined && !reasons.has(name)) reasons.set(name, reason)
  }
  return reasons
}

async function play<World extends TransportFixture>(
  scenario: Scenario,
  { open, capabilities, restartBroker }: ExerciseOptions<World>,
  deadlineMs: number,
): Promise<PlayedScenario> {
  const playMs = deadlineMs * PLAY_DEADLINES
  const world = await inTime('open() of the world', open(), playMs)
  const skipped = scenario.needs === undefined ? undefined : world.cannot?.[scenario.needs]
  if (skipped !== undefined) {
    await inTime('world.close()', world.close(), playMs)
    return { skipped }
  }
  const context = new ScenarioContext({
    world,
    capabilities,
    deadlineMs,
    restartBroker: () => restartBroker?.(world),
  })
  try {
    await inTime('The scenario', scenario.play(context), playMs)
  } catch (error) {
    // The first error matters to the reader; a later error on close is only a consequence.
    const explained = context.evidence.explain(error)
    await context.close().catch(() => undefined)
    throw explained
  }
  await context.close().catch((error: unknown) => {
    throw context.evidence.explain(error)
  })
  return {}
}

/** Returns the result of the work. Rejects when it takes longer, so that the error names the call that hangs. */
const inTime = <T>(what: string, work: Awaitable<T>, timeoutMs: number): Promise<T> =>
  withTimeout(work, timeoutMs, () => {
    throw new Error(`${what} has not ended after ${timeoutMs} ms.`)
  })

async function stress<World extends TransportFixture>(
  scenarios: readonly Scenario[],
  options: ExerciseOptions<World>,
  deadlineMs: number,
): Promise<PlayedScenario> {
  const together = scenarios.filter((scenario) => scenario.isAlone === undefined)
  const runs = Array.from({ length: STRESS_TIMES }, () => together).flat()
  const problems: Error[] = []
  await atMost(STRESS_WORLDS, runs, async (scenario) => {
    try {
      await play(scenario, options, deadlineMs)
    } catch (cause) {
      problems.push(new Error(`${scenario.name}: ${describeError(cause)}`, { cause }))
    }
  })
  if (problems.length === 0) return {}
  const list = problems.map((problem) => problem.message).join('\n')
  throw new AggregateError(problems, `${problems.length} of ${runs.length} failed:\n${list}`)
}

/** Does the work for each item, with limited concurrency. */
async function atMost<T>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values()
  const worker = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: count }, worker))
}
