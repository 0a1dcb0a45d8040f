import type { Capabilities } from '@redrive/runtime'
import type { MemoryBroker, MemoryConnection } from './broker.ts'

export interface MemoryOptions {
  readonly broker: MemoryBroker
  /** The queue to consume. */
  readonly queue: string
  /** How to connect. Default: straight to the broker; a test may put faults in between. */
  readonly connect?: (onLost: () => void) => MemoryConnection
  /** Claim less than the broker can do, to see how a policy fares on a poorer one. */
  readonly capabilities?: Partial<Capabilities>
}

export interface ResolvedOptions {
  readonly queue: string
  readonly connect: (onLost: () => void) => MemoryConnection
  readonly capabilities: Capabilities
  readonly now: () => number
}
