import { CLIENT_CLOCK, playWithWrongClocks } from '../../harness/client-clock.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

export const clientClock: RabbitScenario = {
  ...CLIENT_CLOCK,
  service: 'rabbitmq',
  async play(world) {
    await declareSource(world.broker, world.run)
    // A part of a delay that ends while no consumer runs makes the retry late: its rest begins afterwards.
    await playWithWrongClocks(world, { downMs: 0 })
  },
}
