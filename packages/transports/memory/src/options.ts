import {
  type Check,
  FUNCTION,
  isRecord,
  named,
  readOptions,
  withMethods,
} from '@redrive/core/internal'
import type { Capabilities } from '@redrive/runtime'
import type { MemoryBroker, MemoryConnection } from './broker.ts'
import { CAPABILITIES } from './capabilities.ts'

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
  readonly broker: MemoryBroker
  readonly queue: string
  readonly connect: (onLost: () => void) => MemoryConnection
  readonly capabilities: Capabilities
  readonly now: () => number
}

export function resolveOptions(call: string, options: MemoryOptions): ResolvedOptions {
  return readOptions(call, options, (top) => {
    const broker = top.required<MemoryBroker>('broker', BROKER)
    const connect = top.ifGiven<NonNullable<MemoryOptions['connect']>>('connect', FUNCTION)
    return {
      broker,
      queue: top.required<string>('queue', named('the name of a queue')),
      connect: connect ?? ((onLost) => broker.connect(onLost)),
      capabilities: {
        ...CAPABILITIES,
        ...top.ifGiven<Partial<Capabilities>>('capabilities', OBJECT),
      },
      now: () => broker.now(),
    }
  })
}

const BROKER = withMethods('a broker such as new MemoryBroker()', ['connect', 'now', 'queue'])

const OBJECT: Check = { isValid: isRecord, expected: 'an object of capabilities' }
