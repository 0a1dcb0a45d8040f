import type { Fleet } from '../../harness/fleet.ts'
import { type LoadOptions, underLoad as underLoadOf } from '../../harness/load.ts'
import type { RabbitConsumerOptions } from '../consumer-options.ts'
import { declareSource } from '../topology.ts'
import type { RabbitWorld } from '../world.ts'

/** Runs the load on a queue that exists before any consumer starts. */
export async function underLoad(
  world: RabbitWorld,
  load: LoadOptions<RabbitConsumerOptions>,
  faults: (fleet: Fleet<RabbitConsumerOptions>) => Promise<void>,
): Promise<void> {
  await declareSource(world.broker, world.run)
  await underLoadOf(world, load, faults)
}
