import { FakeClock } from '@redrive/testing'
import { expect, it } from 'vitest'
import { type Handed, MemoryBroker, memory, type MemoryConnection, send } from '../src/index.ts'

it('ignores a delivery that arrives after its connection has ended', async () => {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const late: (() => void)[] = []
  /** Delays the deliveries of a connection until the test passes them on. */
  const connect = (onLost: () => void): MemoryConnection => {
    const connection = broker.connect(onLost)
    const subscribe = (queue: string, listener: (handed: Handed) => void) =>
      connection.subscribe(queue, (handed) => void late.push(() => listener(handed)))
    return new Proxy(connection, {
      get: (target, key) => {
        if (key === 'subscribe') return subscribe
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }
  const transport = memory({ broker, queue: 'orders', connect })
  const delivered: number[] = []
  await transport.open()
  transport.receive({
    deliver: ({ deliveryCount }) => void delivered.push(deliveryCount),
    lost: () => undefined,
  })
  send(broker, 'orders', {})
  broker.restart()
  for (const pass of late) pass()
  expect(delivered).toEqual([2])
  await transport.close()
})
