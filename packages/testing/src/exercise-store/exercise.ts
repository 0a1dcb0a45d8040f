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
import { StoreStage } from './stage.ts'
import { SURVIVING } from './surviving.ts'
import type { StoreWorld } from './world.ts'

export interface ExerciseStoreOptions<World extends StoreWorld = StoreWorld> {
  readonly runner: TestRunner
  /** What is exercised, for the report: `'redis 8'`. */
  readonly name: string
  /** A fresh and empty world; called for every scenario. */
  readonly open: () => Awaitable<World>
  /**
   * Ends that store as `kill -9` ends its process: nothing is flushed, closed or given back, and
   * nothing it does afterwards has an effect. Its leases must lapse within the deadline. Without it,
   * the scenarios that crash must be skipped with a reason.
   */
  readonly crash?: (world: World, store: DeadLetterStore) => Awaitable<void>
  /**
   * A fresh world whose stores have room for 2 to 9,999 dead letters of 1 KB. Without it, the
   * scenario of a full store must be skipped with a reason.
   */
  readonly bounded?: () => Awaitable<StoreWorld>
  readonly skip?: readonly SkippedScenario[]
  /** How long anything may take before it counts as never. Default '30s': a shared CI machine is slow. */
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
/** A scenario waits for several things in turn, each with its own deadline. */
const TEST_DEADLINES = 4

/**
 * The contract of a dead-letter store as a test suite: everything that whoever gives a dead letter
 * to it relies on. It says where each dead letter is, never only that a call ended well.
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
export function exerciseStore<World extends StoreWorld>(
  options: ExerciseStoreOptions<World>,
): void {
  const { runner, name, deadline = DEADLINE_MS } = options
  const deadlineMs = parseDuration(deadline)
  if (deadlineMs === undefined) throw new TypeError(`deadline: ${deadline} is not a duration`)
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

/** Skipped by name, with the reason; what a scenario needs is there or it is skipped. */
function skippedScenarios<World extends StoreWorld>(
  options: ExerciseStoreOptions<World>,
): ReadonlyMap<string, string> {
  const known = SCENARIOS.map((scenario) => scenario.name)
  const reasons = reasonsOf(options.skip ?? [], known)
  for (const { name, needs } of SCENARIOS) {
    if (needs === undefined || options[needs] !== undefined || reasons.has(name)) continue
    throw new Error(`${needs} is missing: give it, or skip '${name}' with a reason`)
  }
  return reasons
}

async function play<World extends StoreWorld>(
  scenario: StoreScenario,
  { open, crash, bounded }: ExerciseStoreOptions<World>,
  deadlineMs: number,
): Promise<void> {
  const world = await open()
  const stage = new StoreStage({
    world,
    deadlineMs,
    crash: (store) => crash?.(world, store),
    bounded: () => bounded?.() ?? world,
  })
  try {
    await scenario.play(stage)
  } catch (error) {
    // What went wrong first is what its reader needs, not what that left behind.
    await stage.close().catch(() => undefined)
    throw error
  }
  await stage.close()
}
