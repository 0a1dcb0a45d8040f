import { endingIn } from '../evidence/expected-ends.ts'
import type { Evidence } from '../evidence/evidence.ts'
import { countEffects, forgetRun, readEffects } from '../harness/effects.ts'
import { readHistory } from '../evidence/history.ts'
import type { Progress, Server } from '../harness/server.ts'
import { becomesTrue } from '../harness/wait.ts'
import { deleteRun, depthsOf, drainRun, unfinishedIn } from './broker.ts'
import type { RabbitWorld } from './world.ts'

export const rabbitServer: Server<RabbitWorld> = {
  look,
  isOver: async ({ broker, run, expected }) => (await unfinishedIn(broker, run)) <= expected.delay,
  countEffects: ({ pool, run }) => countEffects(pool, run),
  collect,
  forget: ({ pool, run }) => forgetRun(pool, run),
}

async function look(world: RabbitWorld): Promise<Progress> {
  const { broker, run, expected, pool, taken } = world
  const effects = await countEffects(pool, run)
  const depths = await depthsOf(broker, run)
  const has = (place: 'dlq' | 'quarantine') =>
    depths[place] + taken.filter((one) => one.place === place).length >= expected[place]
  const isQuiet = depths.source === 0 && depths.delay === expected.delay
  const areEnough = effects >= expected.effect && has('dlq') && has('quarantine')
  return { hasAll: areEnough && isQuiet && (await hasEach(world)), isQuiet }
}

/**
 * Checks that each message was seen. A duplicate could hide a message that is moving out of a delay
 * queue, where it cannot be counted.
 */
async function hasEach({ broker, run, folder, pool, taken }: RabbitWorld): Promise<boolean> {
  taken.push(...(await drainRun(broker, run, ['dlq', 'quarantine'])))
  const effects = await readEffects(pool, run)
  const seen = new Set([...effects.keys(), ...taken.map(({ id }) => id)])
  return endingIn(readHistory(folder)).every((id) => seen.has(id))
}

async function collect(world: RabbitWorld): Promise<Evidence> {
  const { broker, run, folder, pool, taken } = world
  if (!(await hasEach(world))) await awaitHidden(world)
  const found = [...taken, ...(await drainRun(broker, run))]
  const effects = await readEffects(pool, run)
  await deleteRun(broker, run)
  return { entries: readHistory(folder), found, effects }
}

/**
 * 60 s: the broker repeats an unconfirmed move after ten seconds, a setting of dev/services, and starts slowly on a
 * busy machine.
 */
const HIDDEN_MS = 60_000

/** 6 s between two checks: the broker updates its counts every five. */
const COUNT_MS = 6_000

/**
 * Waits for messages that are moving from a delay queue to the source. They cannot be taken from
 * either queue. They are late and not lost, so they get the time to arrive.
 */
async function awaitHidden(world: RabbitWorld): Promise<void> {
  const { broker, run, taken } = world
  let wasEmpty = false
  await becomesTrue(
    async () => {
      taken.push(...(await drainRun(broker, run)))
      const hidden = await unfinishedIn(broker, run)
      if (hidden > 0) {
        world.say(`the broker still holds ${hidden} messages that it does not deliver`)
      }
      // Checked twice, because the first count may be older than the queue.
      const isOver = wasEmpty && hidden === 0
      wasEmpty = hidden === 0
      return isOver || (await hasEach(world))
    },
    { withinMs: HIDDEN_MS, everyMs: COUNT_MS },
  )
}
