import type { Capabilities } from '@redrive/runtime'
import type { MemoryBroker, MemoryConnection } from './broker.ts'

export interface MemoryOptions {
  /** The broker that has the queue. */
  readonly broker: MemoryBroker
  /** The queue to consume. */
  readonly queue: string
  /** Creates the connection. Default: directly to the broker; a test may add faults. */
  readonly connect?: (onLost: () => void) => MemoryConnection
  /** Declare fewer capabilities than the broker has, to test a policy on a weaker broker. Default: all of them. */
  readonly capabilities?: Partial<Capabilities>
}

export interface ResolvedOptions {
  readonly queue: string
  readonly connect: (onLost: () => void) => MemoryConnection
  readonly capabilities: Capabilities
  readonly now: () => number
}
