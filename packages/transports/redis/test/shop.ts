import { randomUUID } from 'node:crypto'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { type Job, Queue, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { type BullmqSource, bullmqSource } from '../src/index.ts'

export interface Order {
  readonly order: number
}

/** A new queue, with a worker whose jobs fail until a test repairs the dependency. */
export function bullmqShop(client: Redis) {
  const queue = new Queue<Order>(`orders-${randomUUID()}`, { connection: client })
  const source = bullmqSource({ client, queue })
  const handled: { readonly id: string | undefined; readonly order: number }[] = []
  const shop = { queue, source, handled, isDown: true, charge }
  async function charge({ id, data }: Job<Order>) {
    if (shop.isDown) throw Object.assign(new TypeError(`order ${data.order} has no customer`))
    handled.push({ id, order: data.order })
  }
  const worker = new Worker<Order>(queue.name, charge, { connection: client })
  // BullMQ reports a failed job to this listener, too.
  worker.on('error', () => undefined)
  onTestFinished(async () => {
    await source.close()
    await worker.close()
    await queue.obliterate({ force: true })
    await client.del(
      ...['cycles', 'ingested', 'leases', 'replays'].map((key) => queue.toKey(`redrive:${key}`)),
    )
  })
  return shop
}

export const failed = (queue: Queue, count: number) =>
  until(`${count} jobs are failed`, async () => (await queue.getFailedCount()) === count)

/** Stores all failed jobs in a catalog, which this function replaces. */
export async function ingest(source: BullmqSource): Promise<readonly DrainedDeadLetter[]> {
  const batch = await source.drain({ limit: 100 })
  await batch.release()
  return batch.deadLetters
}
