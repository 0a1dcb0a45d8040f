import { POLICY } from './consumer-options.ts'
import type { PlannedMessage } from './message.ts'
import type { World } from './world.ts'

/** One message of many kills every process that runs it; what else they had in hand is innocent. */
export async function killByMessage(world: World, atOnce: number): Promise<void> {
  const messages = Array.from({ length: world.messages }, (_, index) => ({
    id: `${world.run}/${index}`,
    // Somewhere in the middle, with many others in hand.
    kind: index === Math.floor(world.messages / 3) ? 'killer' : 'good',
  })) satisfies readonly PlannedMessage[]
  await world.send(world.run, messages)
  const fleet = world.fleet({ policy: { ...POLICY, concurrency: atOnce, limit: 'off' } })
  fleet.supervise()
  const end = world.fault('a message that kills')
  fleet.start()
  fleet.start()
  end()
  world.heal()
}
