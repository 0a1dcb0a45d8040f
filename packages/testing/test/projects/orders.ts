import { deadLetterQueue, MemoryBroker, memory, send } from '@redrive/memory'
import { consume } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'

// Jest and Vitest provide both.
declare const test: (name: string, run: () => Promise<void>) => void
declare const expect: (value: unknown) => { toBe(expected: unknown): void }

test('an order that the dependency refuses becomes a dead letter', async () => {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const consumer = await consume(
    memory({ broker, queue: 'orders' }),
    () => {
      throw Object.assign(new Error('declined'), { status: 409 })
    },
    { clock, logger: 'off' },
  )
  send(broker, 'orders', 'order 1')
  await clock.advance('5m')
  await consumer.stop()
  expect(broker.depth(deadLetterQueue('orders'))).toBe(1)
})
