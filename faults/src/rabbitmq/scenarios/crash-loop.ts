import { killByMessage } from '../../harness/crash-loop.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

export const crashLoop: RabbitScenario = {
  name: 'crash-loop',
  story:
    'one message among many kills every process that runs it; only this message is quarantined',
  service: 'rabbitmq',
  messages: { quick: 1_000, full: 1_000 },
  async play(world) {
    await declareSource(world.broker, world.run)
    await killByMessage(world, 100)
  },
}
