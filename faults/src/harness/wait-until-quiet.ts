import { RECOVERY_BOUND_S } from '../evidence/check.ts'
import type { Progress, Server } from './server.ts'
import { becomesTrue } from './wait.ts'
import type { World } from './world.ts'

/**
 * A little more than the bound, so that a slow recovery is measured and not only reported as
 * missing.
 */
const PATIENCE_MS = (RECOVERY_BOUND_S + 15) * 1_000
/** 12 s without any activity: longer than the delay of a broker's own figures. */
const QUIET_MS = 12_000

/** 20 s without another effect: with `stopAtFirst`, the missing messages will not come. */
const STALLED_MS = 20_000

/**
 * Waits until every acknowledged message is where it belongs and none is waiting or in flight. When
 * nothing changes although messages are missing, it stops waiting, and the checker reports them as
 * lost.
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

/** An observation with its time. */
export interface Look extends Progress {
  readonly at: number
}

/**
 * Returns since when the run has ended, if two observations in a row agree. Queues are read in
 * sequence, so a message that moves during one observation may be missed once.
 */
export function overSince(before: Look | undefined, now: Look): number | undefined {
  return before !== undefined && isOver(before) && isOver(now) ? before.at : undefined
}

const isOver = ({ hasAll, isQuiet }: Progress) => hasAll && isQuiet

async function look<W extends World>(world: W, server: Server<W>): Promise<Look> {
  try {
    const { hasAll, isQuiet } = await server.look(world)
    const idle = await Promise.all(world.fleets.map((fleet) => fleet.isIdle()))
    return { hasAll, isQuiet: isQuiet && idle.every((one) => one), at: Date.now() }
  } catch {
    // A server is still starting: try again.
    return { hasAll: false, isQuiet: false, at: Date.now() }
  }
}
