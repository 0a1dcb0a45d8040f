import type { Evidence } from '../evidence.ts'
import { countEffects, forgetRun, readEffects } from '../effects.ts'
import { readHistory } from '../history.ts'
import type { Seen, Server } from '../server.ts'
import { becomesTrue } from '../wait.ts'
import { deleteRun, depthsOf, drainRun, unfinishedIn } from './broker.ts'
import type { RabbitWorld } from './world.ts'

export const rabbitServer: Server<RabbitWorld> = {
  look,
  isOver: async ({ broker, run, expected }) => (await unfinishedIn(broker, run)) <= expected.delay,
  countEffects: ({ pool, run }) => countEffects(pool, run),
  collect,
  forget: ({ pool, run }) => forgetRun(pool, run),
}

async function look({ broker, run, expected, pool, taken }: RabbitWorld): Promise<Seen> {
  const effects = await countEffects(pool, run)
  const depths = await depthsOf(broker, run)
  const hasAll =
    effects >= expected.effect &&
    depths.dlq + taken.length >= expected.dlq &&
    depths.quarantine >= expected.quarantine
  return { hasAll, isQuiet: depths.source === 0 && depths.delay === expected.delay }
}

async function collect(world: RabbitWorld): Promise<Evidence> {
  const { broker, run, folder, pool } = world
  const found = [...world.taken, ...(await drainRun(broker, run))]
  const isShort = found.length < world.expected.dlq + world.expected.quarantine
  const hasAll = !isShort && (await countEffects(pool, run)) >= world.expected.effect
  if (!hasAll) {
    await awaitHidden(world, async () => {
      found.push(...(await drainRun(broker, run)))
    })
  }
  const effects = await readEffects(pool, run)
  await deleteRun(broker, run)
  return { entries: readHistory(folder), found, effects }
}

/** 200 s: the broker itself moves again what it was moving after three minutes. */
const HIDDEN_MS = 200_000

/**
 * What is on its way from a delay queue to the source cannot be taken out of either. It is not lost,
 * only late: before anybody says otherwise, it must have had the time to arrive.
 */
async function awaitHidden(world: RabbitWorld, taken: () => Promise<void>): Promise<void> {
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
