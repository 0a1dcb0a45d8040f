import { RECOVERY_BOUND_S } from './check.ts'
import type { Seen, Server } from './server.ts'
import { becomesTrue } from './wait.ts'
import type { World } from './world.ts'

/** A little beyond the bound, so that a recovery that is too slow is measured and not only missed. */
const PATIENCE_MS = (RECOVERY_BOUND_S + 15) * 1_000
/** 12 s without anything anywhere: longer than a broker's own figures lag behind. */
const QUIET_MS = 12_000

/** 20 s without one more effect: with `stopAtFirst`, whatever is missing will not come. */
const STALLED_MS = 20_000

/**
 * Waits until everything has come to its end: every acknowledged message is where it belongs, and
 * nothing waits or is in anybody's hands. When all is quiet although something is missing, waiting
 * longer would not bring it back: the checker will say that it is lost.
 */
export async function drain<W extends World>(world: W, server: Server<W>): Promise<void> {
  let before: Look | undefined
  const isStalled = stallOf(world, server)
  let quietSince: number | undefined
  const isDrained = async () => {
    const now = await look(world, server)
    quietSince = now.isQuiet ? (quietSince ?? now.at) : undefined
    const isLong = quietSince !== undefined && now.at - quietSince > QUIET_MS
    let at = overSince(before, now)
    before = now
    if (at === undefined && isLong && (await server.isOver(world))) at = Date.now()
    if (at === undefined) return world.stopAtFirst && (await isStalled(now.at))
    world.history.write({ what: 'drained', at })
    return true
  }
  await becomesTrue(isDrained, { withinMs: PATIENCE_MS, everyMs: 250 })
}

/** Returns a function that reports whether the number of effects has not changed for `STALLED_MS`. */
function stallOf<W extends World>(world: W, server: Server<W>): (now: number) => Promise<boolean> {
  let effects = -1
  let changedAt = 0
  return async (now) => {
    const count = await server.countEffects(world).catch(() => effects)
    if (count !== effects) changedAt = now
    effects = count
    return now - changedAt > STALLED_MS
  }
}

/** What was seen, and when. */
export interface Look extends Seen {
  readonly at: number
}

/**
 * Since when all is over, if two looks in a row say so. Places are looked at one after the other: what
 * went from one to another meanwhile is missed once.
 */
export function overSince(before: Look | undefined, now: Look): number | undefined {
  return before !== undefined && isOver(before) && isOver(now) ? before.at : undefined
}

const isOver = ({ hasAll, isQuiet }: Seen) => hasAll && isQuiet

async function look<W extends World>(world: W, server: Server<W>): Promise<Look> {
  try {
    const { hasAll, isQuiet } = await server.look(world)
    const idle = await Promise.all(world.fleets.map((fleet) => fleet.isIdle()))
    return { hasAll, isQuiet: isQuiet && idle.every((one) => one), at: Date.now() }
  } catch {
    // Something is still on its way up: look again.
    return { hasAll: false, isQuiet: false, at: Date.now() }
  }
}
