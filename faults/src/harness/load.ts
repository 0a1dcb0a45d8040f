import { readHistory } from '../evidence/history.ts'
import type { ConsumerOptions } from './consumer-options.ts'
import { type Fleet, type FleetOptions, ready } from './fleet.ts'
import { becomesTrue, type Deadline } from './wait.ts'
import type { Load, World } from './world.ts'

export interface LoadOptions<Options extends ConsumerOptions> extends Load {
  /** The number of consumers, or the special options of each. */
  readonly consumers: number | readonly Partial<FleetOptions<Options>>[]
  readonly fleet?: Partial<FleetOptions<Options>>
  /** Called when the consumers are ready and before the first message. */
  readonly before?: () => Promise<void>
}

/** Runs consumers and messages with the faults in between. All faults have ended when it resolves. */
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
  await becomesTrue(() => isHandling(world), HANDLING)
  await faults(fleet)
  world.heal()
  const isStillSending = performance.now() < sentAt
  await produced
  // Messages sent after the fault are load and do not count as recovery.
  if (isStillSending) world.heal()
}

/** 30 s: on a busy machine, connections to a producer and its first message take seconds. */
const HANDLING: Deadline = { withinMs: 30_000 }

/** Returns whether a consumer has started a message. Before that, a fault interrupts nothing. */
const isHandling = ({ folder }: Pick<World, 'folder'>): boolean =>
  readHistory(folder).some(({ what }) => what === 'handler_started')
