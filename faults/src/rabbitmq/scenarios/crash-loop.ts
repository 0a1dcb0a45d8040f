import type { PlannedMessage } from '../../message.ts'
import { declareSource } from '../topology.ts'
import { POLICY, type RabbitScenario } from '../world.ts'

export const crashLoop: RabbitScenario = {
  name: 'crash-loop',
  story: 'one message among many kills every process that runs it; it alone is set aside',
  service: 'rabbitmq',
  messages: { quick: 1_000, full: 1_000 },
  async play(world) {
    await declareSource(world.broker, world.run)
    const messages = Array.from({ length: world.messages }, (_, index) => ({
      id: `${world.run}/${index}`,
      // Somewhere in the middle, with a hundred others in hand.
      kind: index === Math.floor(world.messages / 3) ? 'killer' : 'good',
    })) satisfies readonly PlannedMessage[]
    await world.send(world.run, messages)
    const fleet = world.fleet({ policy: { ...POLICY, concurrency: 100, limit: 'off' } })
    fleet.supervise()
    const end = world.fault('a message that kills')
    fleet.start()
    fleet.start()
    end()
    world.heal()
  },
}
