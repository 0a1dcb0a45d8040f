import { CRASH_LOOP, killByMessage } from '../../harness/crash-loop.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

export const crashLoop: RabbitScenario = {
  ...CRASH_LOOP,
  service: 'rabbitmq',
  messages: { quick: 1_000, full: 1_000 },
  async play(world) {
    await declareSource(world.broker, world.run)
    await killByMessage(world, 100)
  },
}
