import { POLICY } from './consumer-options.ts'
import type { PlannedMessage } from '../evidence/message.ts'
import type { World } from './world.ts'

/** One of many messages kills every process that runs it. The other in-flight messages are innocent. */
export async function killByMessage(world: World, atOnce: number): Promise<void> {
  const messages = Array.from({ length: world.messages }, (_, index) => ({
    id: `${world.run}/${index}`,
    // In the middle, with many others in flight.
    kind: index === Math.floor(world.messages / 3) ? 'killer' : 'good',
  })) satisfies readonly PlannedMessage[]
  await world.send(world.run, messages)
  const fleet = world.fleet({
    policy: { ...POLICY, concurrency: atOnce, adaptiveConcurrency: 'off' },
  })
  fleet.supervise()
  const end = world.fault('a message that kills')
  fleet.start()
  fleet.start()
  end()
  world.heal()
}

/** A scenario for every broker. */
export const CRASH_LOOP = {
  name: 'crash-loop',
  story: 'one message kills every process that runs it; it is quarantined, the others are handled',
  messages: { quick: 100, full: 300 },
} as const
