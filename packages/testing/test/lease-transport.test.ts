import { describe, it } from 'vitest'
import { exerciseTransport } from '../src/index.ts'
import { CAPABILITIES } from './lease-transport/capabilities.ts'
import { leaseWorld } from './lease-transport/world.ts'

exerciseTransport({
  runner: { describe, it },
  name: 'leases, virtual time',
  capabilities: CAPABILITIES,
  open: () => leaseWorld(),
  restartBroker: (world) => world.restart(),
})
