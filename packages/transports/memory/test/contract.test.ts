import { exerciseTransport, FakeClock } from '@redrive/testing'
import { memoryFixture } from '@redrive/testing/internal'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'

const runner = { describe, it }
const restartBroker = (world: { restart(): void }) => world.restart()

exerciseTransport({
  runner,
  name: 'memory, real time',
  capabilities: CAPABILITIES,
  open: () => memoryFixture(),
  restartBroker,
})

exerciseTransport({
  runner,
  name: 'memory, virtual time',
  capabilities: CAPABILITIES,
  open: () => memoryFixture({ clock: new FakeClock() }),
  restartBroker,
})

exerciseTransport({
  runner,
  name: 'memory behind a slow network, virtual time',
  capabilities: CAPABILITIES,
  open: () => memoryFixture({ clock: new FakeClock(), latencyMs: 3 }),
  restartBroker,
})

/** The capabilities of a weak broker: the suite then checks that the rest is rejected, not faked. */
const POOR = {
  ...CAPABILITIES,
  delay: { kind: 'none' },
  ordering: 'none',
  deliveryCount: 'none',
  headerBudgetBytes: 2_048,
} as const

exerciseTransport({
  runner,
  name: 'memory with few capabilities, virtual time',
  capabilities: POOR,
  open: () => memoryFixture({ clock: new FakeClock(), capabilities: POOR }),
  restartBroker,
})
