import { RECOVERY_BOUND_S } from './check.ts'
import type { Seen, Server } from './server.ts'
import { becomesTrue } from './wait.ts'
import type { World } from './world.ts'

/** A little beyond the bound, so that a recovery that is too slow is measured and not only missed. */
const PATIENCE_MS = (RECOVERY_BOUND_S + 15) * 1_000
/** 12 s without anything anywhere: longer than a broker's own figures lag behind. */
const QUIET_MS = 12_000

/**
 * Waits until everything has come to its end: every acknowledged message is where it belongs, and
 * nothing waits or is in anybody's hands. When all is quiet although something is missing, waiting
 * longer would not bring it back: the checker will say that it is lost.
 */
export async function drain<W extends World>(world: W, server: Server<W>): Promise<void> {
  let quietSince: number | undefined
  const isDrained = async () => {
    const { hasAll, isQuiet } = await look(world, server)
    if (!isQuiet) quietSince = undefined
    else quietSince ??= performance.now()
    if (isQuiet && hasAll) return true
    const isOver = quietSince !== undefined && performance.now() - quietSince > QUIET_MS
    return isOver && (await server.isOver(world))
  }
  if (await becomesTrue(isDrained, { withinMs: PATIENCE_MS, everyMs: 250 })) {
    world.history.write({ what: 'drained' })
  }
}

async function look<W extends World>(world: W, server: Server<W>): Promise<Seen> {
  try {
    const { hasAll, isQuiet } = await server.look(world)
    const idle = await Promise.all(world.fleets.map((fleet) => fleet.isIdle()))
    return { hasAll, isQuiet: isQuiet && idle.every((one) => one) }
  } catch {
    // Something is still on its way up: look again.
    return { hasAll: false, isQuiet: false }
  }
}
