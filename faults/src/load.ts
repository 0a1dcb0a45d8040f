import type { ConsumerOptions } from './consumer-options.ts'
import { type Fleet, type FleetOptions, ready } from './fleet.ts'
import type { Load, World } from './world.ts'

export interface LoadOptions<Options extends ConsumerOptions> extends Load {
  /** How many, or what is special about each. */
  readonly consumers: number | readonly Partial<FleetOptions<Options>>[]
  readonly fleet?: Partial<FleetOptions<Options>>
  /** When the consumers are there and no message is. */
  readonly before?: () => Promise<void>
}

/** Consumers at work and messages on their way, with the faults in between; healed when it resolves. */
export async function underLoad<Options extends ConsumerOptions>(
  world: World<Options>,
  { consumers, fleet: options, before, ...load }: LoadOptions<Options>,
  faults: (fleet: Fleet<Options>) => Promise<void>,
): Promise<void> {
  const fleet = world.fleet(options)
  const each =
    typeof consumers === 'number' ? Array.from({ length: consumers }, () => ({})) : consumers
  for (const special of each) fleet.start(special)
  await ready(fleet, each.length)
  await before?.()
  const messages = load.messages ?? world.messages
  const sentAt = performance.now() + (messages / load.ratePerSecond) * 1_000
  const produced = world.produce(load)
  await faults(fleet)
  world.heal()
  const isStillSending = performance.now() < sentAt
  await produced
  // What was sent after the fault is load, not recovery.
  if (isStillSending) world.heal()
}
