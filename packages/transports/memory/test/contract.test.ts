import { exerciseTransport, FakeClock, memoryWorld } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/index.ts'

const runner = { describe, it }
const restartBroker = (world: { restart(): void }) => world.restart()

exerciseTransport({
  runner,
  name: 'memory, real time',
  capabilities: CAPABILITIES,
  open: () => memoryWorld(),
  restartBroker,
})

exerciseTransport({
  runner,
  name: 'memory, virtual time',
  capabilities: CAPABILITIES,
  open: () => memoryWorld({ clock: new FakeClock() }),
  restartBroker,
})

exerciseTransport({
  runner,
  name: 'memory behind a slow network, virtual time',
  capabilities: CAPABILITIES,
  open: () => memoryWorld({ clock: new FakeClock(), latencyMs: 3 }),
  restartBroker,
})

/** What the poorest of brokers can do: the suite then sees that the rest is refused, not faked. */
const POOR = {
  ...CAPABILITIES,
  delay: { kind: 'none' },
  ordering: 'none',
  deliveryCount: 'none',
  headerBudgetBytes: 2_048,
} as const

exerciseTransport({
  runner,
  name: 'memory that claims little, virtual time',
  capabilities: POOR,
  open: () => memoryWorld({ clock: new FakeClock(), capabilities: POOR }),
  restartBroker,
})
