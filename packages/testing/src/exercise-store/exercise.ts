import { type Duration, parseDuration } from '@redrive/core'
import type { Awaitable, DeadLetterStore } from '@redrive/runtime'
import {
  reasonsOf,
  reportSkipped,
  type SkippedScenario,
  type TestRunner,
} from '../exercise/runner.ts'
import { KEEPING } from './keeping.ts'
import { LISTING } from './listing.ts'
import { REMOVING } from './removing.ts'
import { REPLAYING } from './replaying.ts'
import type { StoreScenario } from './scenario.ts'
import { StoreScenarioContext } from './stage.ts'
import { SURVIVING } from './surviving.ts'
import type { StoreFixture } from './world.ts'

export interface ExerciseStoreOptions<World extends StoreFixture = StoreFixture> {
  readonly runner: TestRunner
  /** Name of the store in the report, such as `'redis 8'`. */
  readonly name: string
  /** Creates a new, empty fixture; called for every scenario. */
  readonly open: () => Awaitable<World>
  /**
   * Ends that store as `kill -9` ends its process: nothing is flushed, closed or returned, and
   * nothing it does afterwards has an effect. Its leases must expire within the deadline. Without this
   * option, the crash scenarios must be skipped with a reason.
   */
  readonly crash?: (world: World, store: DeadLetterStore) => Awaitable<void>
  /**
   * Creates a new fixture whose stores have room for 2 to 9,999 dead letters of 1 KB. Without this option,
   * the scenario of a full store must be skipped with a reason.
   */
  readonly bounded?: () => Awaitable<StoreFixture>
  readonly skip?: readonly SkippedScenario[]
  /** Maximum time of each wait. Default '30s', because a shared CI machine is slow. */
  readonly deadline?: Duration
}

const SCENARIOS: readonly StoreScenario[] = [
  ...KEEPING,
  ...LISTING,
  ...REPLAYING,
  ...REMOVING,
  ...SURVIVING,
]
const DEADLINE_MS = 30_000
/** A scenario has several waits, each with a separate deadline. */
const TEST_DEADLINES = 4

/**
 * Defines the contract of a dead-letter store as a test suite: all guarantees that callers of a store
 * rely on. It checks where each dead letter is, not only that a call succeeded.
 *
 * ```ts
 * import { describe, it } from 'vitest'
 *
 * exerciseStore({
 *   runner: { describe, it },
 *   name: 'my store',
 *   open: () => openWorld(),
 *   crash: (world, store) => world.cut(store),
 *   bounded: () => openWorld({ maxBytes: 10_000 }),
 * })
 * ```
 */
export function exerciseStore<World extends StoreFixture>(
  options: ExerciseStoreOptions<World>,
): void {
  const { runner, name, deadline = DEADLINE_MS } = options
  const deadlineMs = parseDuration(deadline)
  if (deadlineMs === undefined)
    throw new TypeError(`deadline: expected a duration such as '30s', got "${deadline}"`)
  const skipped = skippedScenarios(options)
  runner.describe(`store: ${name}`, () => {
    for (const scenario of SCENARIOS) {
      const reason = skipped.get(scenario.name)
      const test = () => play(scenario, options, deadlineMs)
      if (reason !== undefined) reportSkipped(runner, scenario.name, reason)
      else runner.it(scenario.name, test, deadlineMs * TEST_DEADLINES)
    }
  })
}

/** Returns the skipped scenarios with their reasons. Throws when a scenario lacks an option and is not skipped. */
function skippedScenarios<World extends StoreFixture>(
  options: ExerciseStoreOptions<World>,
): ReadonlyMap<string, string> {
  const known = SCENARIOS.map((scenario) => scenario.name)
  const reasons = reasonsOf(options.skip ?? [], known)
  for (const { name, needs } of SCENARIOS) {
    if (needs === undefined || options[needs] !== undefined || reasons.has(name)) continue
    throw new Error(`Option "${needs}" is missing. Pass it, or skip "${name}" with a reason.`)
  }
  return reasons
}

async function play<World extends StoreFixture>(
  scenario: StoreScenario,
  { open, crash, bounded }: ExerciseStoreOptions<World>,
  deadlineMs: number,
): Promise<void> {
  const world = await open()
  const context = new StoreScenarioContext({
    world,
    deadlineMs,
    crash: (store) => crash?.(world, store),
    bounded: () => bounded?.() ?? world,
  })
  try {
    await scenario.play(context)
  } catch (error) {
    // The first error matters to the reader; a later error on close is only a consequence.
    await context.close().catch(() => undefined)
    throw error
  }
  await context.close()
}
