import { countEffects } from '../effects.ts'
import { RECOVERY_BOUND_S } from '../check.ts'
import { becomesTrue } from '../wait.ts'
import { depthsOf, unfinishedIn } from './broker.ts'
import type { World } from './world.ts'

/** A little beyond the bound, so that a recovery that is too slow is measured and not only missed. */
const PATIENCE_MS = (RECOVERY_BOUND_S + 15) * 1_000
/** 12 s without anything anywhere: longer than the broker's own figures lag behind. */
const QUIET_MS = 12_000

/**
 * Waits until everything has come to its end: every acknowledged message is where it belongs, and
 * nothing waits or is in anybody's hands. When all is quiet although something is missing, waiting
 * longer would not bring it back: the checker will say that it is lost.
 */
export async function drain(world: World): Promise<void> {
  let quietSince: number | undefined
  const isDrained = async () => {
    const { hasAll, isQuiet } = await look(world)
    if (!isQuiet) quietSince = undefined
    else quietSince ??= performance.now()
    if (isQuiet && hasAll) return true
    const isOver = quietSince !== undefined && performance.now() - quietSince > QUIET_MS
    return isOver && (await unfinishedIn(world.broker, world.run)) <= world.expected.delay
  }
  if (await becomesTrue(isDrained, { withinMs: PATIENCE_MS, everyMs: 250 })) {
    world.history.write({ what: 'drained' })
  }
}

/** 200 s: the broker itself moves again what it was moving after three minutes. */
const HIDDEN_MS = 200_000

/**
 * What is on its way from a delay queue to the source cannot be taken out of either. It is not lost,
 * only late: before anybody says otherwise, it must have had the time to arrive.
 */
export async function awaitHidden(world: World, taken: () => Promise<void>): Promise<void> {
  await becomesTrue(
    async () => {
      await taken()
      const hidden = await unfinishedIn(world.broker, world.run)
      if (hidden > 0)
        world.say(`the broker still holds ${hidden} messages that it does not hand out`)
      return hidden === 0
    },
    { withinMs: HIDDEN_MS, everyMs: 6_000 },
  )
}

async function look(world: World): Promise<{ hasAll: boolean; isQuiet: boolean }> {
  const { broker, run, expected } = world
  try {
    const effects = await countEffects(world.pool, run)
    const depths = await depthsOf(broker, run)
    const idle = await Promise.all(world.fleets.map((fleet) => fleet.isIdle()))
    const hasAll =
      effects >= expected.effect &&
      depths.dlq + world.taken.length >= expected.dlq &&
      depths.quarantine >= expected.quarantine
    const isQuiet =
      depths.source === 0 && depths.delay === expected.delay && idle.every((one) => one)
    return { hasAll, isQuiet }
  } catch {
    // A node is still on its way up: look again.
    return { hasAll: false, isQuiet: false }
  }
}
