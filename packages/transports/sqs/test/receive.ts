import type { Transport } from '@redrive/runtime'
import { until } from '@redrive/testing'
import type { SqsDelivery } from '../src/index.ts'

/** Opens a transport and collects what it reports. */
export async function receiveFrom(transport: Transport, limit = 1) {
  const delivered: SqsDelivery[] = []
  const lost: SqsDelivery[] = []
  await transport.open()
  transport.limit(limit)
  await transport.receive({
    deliver: (delivery) => delivered.push(delivery as SqsDelivery),
    lost: (delivery) => lost.push(delivery as SqsDelivery),
  })
  return {
    delivered,
    lost,
    /** Waits for a delivery, and returns it. */
    first: async (): Promise<SqsDelivery> => {
      await until('a message arrives', () => delivered.length > 0)
      const [delivery] = delivered
      if (delivery === undefined) throw new Error('no message')
      return delivery
    },
  }
}
