// Messages in flight: what each keeps in memory while its handler waits.
import { rabbitmq } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { patiently } from '../patience.ts'
import { Broker, brokerUrl, ownQueue } from '../rabbitmq/broker.ts'
import { Tally } from '../handlers.ts'
import { memoryKb } from './measuring.ts'
import type { Stage } from './subject.ts'

const WARM_UP = 1_000

export async function openInFlight(): Promise<Stage> {
  const broker = await Broker.open(await brokerUrl())
  const queue = ownQueue()
  await broker.declare(queue)
  return {
    warmUp: async () => void (await heldKb(broker, queue, WARM_UP)),
    measure: async (size) => ({ memory: [await heldKb(broker, queue, size)] }),
    async close() {
      await broker.delete(queue)
      await broker.close()
    },
  }
}

/** Returns the memory in KB that a consumer and its messages in flight occupy. */
async function heldKb(broker: Broker, queue: string, size: number): Promise<number> {
  await broker.fill(queue, size)
  const before = memoryKb()
  const tally = new Tally()
  const allStarted = tally.expect(size)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const handler = async () => {
    tally.count()
    await released
  }
  const consumer = await consume(rabbitmq({ url: broker.url, queue }), handler, {
    concurrency: size,
    adaptiveConcurrency: 'off',
  })
  try {
    await patiently(allStarted, () => `${tally.calls} of ${size} messages in flight`)
    return memoryKb() - before
  } finally {
    release()
    await consumer.stop()
    await broker.purge(queue)
  }
}
