import type { Fleet } from '../../fleet.ts'
import { type LoadOptions, underLoad as underLoadOf } from '../../load.ts'
import type { RabbitConsumerOptions } from '../consumer-options.ts'
import { declareSource } from '../topology.ts'
import type { RabbitWorld } from '../world.ts'

/** On a queue that is there before anybody consumes. */
export async function underLoad(
  world: RabbitWorld,
  load: LoadOptions<RabbitConsumerOptions>,
  faults: (fleet: Fleet<RabbitConsumerOptions>) => Promise<void>,
): Promise<void> {
  await declareSource(world.broker, world.run)
  await underLoadOf(world, load, faults)
}
