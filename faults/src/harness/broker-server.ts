import type { Pool } from 'pg'
import type { Evidence, FoundMessage, Place } from '../evidence/evidence.ts'
import { readHistory } from '../evidence/history.ts'
import { countEffects, forgetRun, readEffects } from './effects.ts'
import type { Progress, Server } from './server.ts'
import type { World } from './world.ts'

export type Depths = Readonly<Record<Place, number>>

/** The content of a broker whose messages can be read without taking them, as an administrator sees it. */
export interface BrokerContent<W extends World> {
  /** Counts stored messages. A message that is moving is counted at least once. */
  depths(world: W): Promise<Depths>
  found(world: W): Promise<readonly FoundMessage[]>
  /** Deletes everything of a run. */
  remove(world: W): Promise<void>
}

interface BrokerWorld extends World {
  readonly pool: Pool
}

/** Returns the access to a broker whose consumers have their effects in PostgreSQL. */
export function brokerServer<W extends BrokerWorld>(content: BrokerContent<W>): Server<W> {
  return {
    async look(world): Promise<Progress> {
      const { expected, pool, run } = world
      // Depths first: a message that ends in between then has its effect.
      const depths = await content.depths(world)
      const effects = await countEffects(pool, run)
      const hasAll =
        effects >= expected.effect &&
        depths.dlq >= expected.dlq &&
        depths.quarantine >= expected.quarantine
      return { hasAll, isQuiet: depths.source === 0 && depths.delay === expected.delay }
    },
    async isOver(world) {
      const { source, delay } = await content.depths(world)
      return source + delay <= world.expected.delay
    },
    countEffects: ({ pool, run }) => countEffects(pool, run),
    async collect(world): Promise<Evidence> {
      const { folder, pool, run } = world
      const found = await content.found(world)
      await content.remove(world)
      return { entries: readHistory(folder), found, effects: await readEffects(pool, run) }
    },
    forget: ({ pool, run }) => forgetRun(pool, run),
  }
}
