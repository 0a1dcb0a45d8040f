import { ready } from './fleet.ts'
import { lasting } from './wait.ts'
import type { World } from './world.ts'

const CONSUMERS = 3
const RATE = 300
/**
 * Time between two kills: long enough that one process in three works, so messages are always in
 * flight.
 */
const SHORTEST_MS = 300
const LONGEST_MS = 1_200

/** Kills consumers at random while there is load. */
export async function killAtRandom(world: World): Promise<void> {
  const fleet = world.fleet()
  for (let count = 0; count < CONSUMERS; count++) fleet.start()
  await ready(fleet, CONSUMERS)
  fleet.supervise()
  let isProducing = true
  const produced = world.produce({ ratePerSecond: RATE }).finally(() => {
    isProducing = false
  })
  const end = world.fault('random kills')
  while (isProducing) {
    await lasting(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS))
    const ready = fleet.members().filter(({ isReady }) => isReady)
    // On a busy machine a process takes seconds to start. Without this check no process would be
    // left to kill.
    if (ready.length < 2) continue
    ready[Math.floor(Math.random() * ready.length)]?.signal('SIGKILL')
  }
  end()
  await produced
  world.heal()
}

/** A scenario for every broker. */
export const KILL_RANDOM = {
  name: 'kill-random',
  story: 'consumers are killed at random under load; their in-flight messages are delivered again',
  messages: { quick: 2_000, full: 30_000 },
} as const
