import type { Delivery } from '@redrive/core'
import type { Transport } from '@redrive/runtime'

/** Returns a transport that calls this one, with some parts replaced. */
export function wrapTransport(transport: Transport, changes: Partial<Transport>): Transport {
  return {
    source: transport.source,
    capabilities: transport.capabilities,
    open: (needs) => transport.open(needs),
    receive: (receiver) => transport.receive(receiver),
    enact: (delivery: Delivery, decision) => transport.enact(delivery, decision),
    limit: (count) => transport.limit(count),
    pause: () => transport.pause(),
    resume: () => transport.resume(),
    close: (options) => transport.close(options),
    ...changes,
  }
}
