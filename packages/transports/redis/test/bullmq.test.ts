import { randomUUID } from 'node:crypto'
import { createClient } from '@redis/client'
import { urlOf } from '@redrive/dev-support'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { bullmqSource } from '../src/index.ts'
import { bullmqShop, failed, ingest, type Order } from './shop.ts'

const url = await urlOf('redis')
const client = new Redis(url, { maxRetriesPerRequest: null })
afterAll(() => client.disconnect())

const aShop = () => bullmqShop(client)

describe('failed jobs of BullMQ', () => {
  it('are dead letters with their data, error and attempts, and stay in the queue', async () => {
    const { queue, source } = aShop()
    const job = await queue.add('charge', { order: 7 }, { attempts: 2, jobId: 'order-7' })
    await failed(queue, 1)
    expect(await source.depth()).toBe(1)
    const [dead, ...others] = await ingest(source)
    expect(others).toEqual([])
    expect(dead).toMatchObject({
      origin: queue.name,
      reason: 'bullmq_failed',
      quarantined: false,
      identity: 'stable',
      stack: expect.stringContaining('shop.ts') as unknown,
      delivery: { id: job.id, key: 'order-7', type: 'charge', contentType: 'application/json' },
    })
    expect(Buffer.from(dead?.delivery.bytes ?? []).toString()).toBe('{"order":7}')
    expect(dead?.delivery.cycle).toMatchObject({ number: 1, attempts: 2 })
    expect(dead?.delivery.cycle.history).toMatchObject([
      { type: 'TypeError', message: 'order 7 has no customer' },
    ])
    expect(await source.depth()).toBe(0)
    expect(await ingest(source)).toEqual([])
    expect(await queue.getFailedCount()).toBe(1)
  })

  it('are drained by one control plane, and again after it abandons them', async () => {
    const { queue, source } = aShop()
    await queue.addBulk([1, 2, 3].map((order) => ({ name: 'charge', data: { order } })))
    await failed(queue, 3)
    const other = bullmqSource({ client, queue })
    const first = await source.drain({ limit: 2 })
    const second = await other.drain({ limit: 2 })
    expect([first.deadLetters.length, second.deadLetters.length]).toEqual([2, 1])
    await second.release()
    await first.abandon()
    expect(await ingest(source)).toHaveLength(2)
    await other.close()
  })

  it('are retried in place by a replay, once, and confirmed when they are completed', async () => {
    const shop = aShop()
    const { queue, source, handled } = shop
    await queue.add('charge', { order: 7 }, { attempts: 3, backoff: 1, jobId: 'order-7' })
    await failed(queue, 1)
    const [deadLetter] = await ingest(source)
    if (deadLetter === undefined) throw new Error('no dead letter')
    shop.isDown = false
    const confirmations = () => source.confirmations({ limit: 10 })
    expect((await confirmations()).confirmations).toEqual([])
    for (let i = 0; i < 2; i++) await source.publish({ deadLetter, replayId: 'replay-1' })
    await until('it is handled', () => handled.length > 0)
    await until('it is completed', async () => (await queue.getCompletedCount()) === 1)
    await source.publish({ deadLetter, replayId: 'replay-1' })
    expect(handled).toEqual([{ id: 'order-7', order: 7 }])
    const kept = await confirmations()
    expect(kept.confirmations).toMatchObject([{ replayId: 'replay-1', outcome: 'handled' }])
    await kept.abandon()
    const again = await confirmations()
    expect(again.confirmations).toEqual(kept.confirmations)
    await again.release()
    expect((await confirmations()).confirmations).toEqual([])
  })

  it('that fail again after a replay are drained in their next cycle with the id of the replay', async () => {
    const { queue, source } = aShop()
    await queue.add('charge', { order: 7 })
    await failed(queue, 1)
    const [deadLetter] = await ingest(source)
    if (deadLetter === undefined) throw new Error('no dead letter')
    await source.publish({ deadLetter, replayId: 'replay-1' })
    let again: readonly DrainedDeadLetter[] = []
    await until('it failed again', async () => {
      again = await ingest(source)
      return again.length > 0
    })
    expect(again).toMatchObject([
      { delivery: { id: deadLetter.delivery.id, replayId: 'replay-1', cycle: { number: 2 } } },
    ])
    expect((await source.confirmations({ limit: 10 })).confirmations).toEqual([])
    await source.publish({ deadLetter, replayId: 'replay-1' })
    expect(await queue.getFailedCount()).toBe(1)
  })

  it('are replayed with edited data, also after they were removed from the queue', async () => {
    const shop = aShop()
    const { queue, source, handled } = shop
    for (const order of [1, 2]) await queue.add('charge', { order })
    await failed(queue, 2)
    const [first, second] = await ingest(source)
    if (first === undefined || second === undefined) throw new Error('no dead letter')
    shop.isDown = false
    await (await queue.getJob(second.delivery.id))?.remove()
    const edited = (deadLetter: DrainedDeadLetter, order: number) => {
      const bytes = Buffer.from(JSON.stringify({ order }))
      return { ...deadLetter, delivery: { ...deadLetter.delivery, bytes } }
    }
    await source.publish({ deadLetter: edited(first, 10), replayId: 'replay-1' })
    for (let i = 0; i < 2; i++) {
      await source.publish({ deadLetter: edited(second, 20), replayId: 'replay-2' })
    }
    await until('both are completed', async () => (await queue.getCompletedCount()) === 2)
    expect(new Set(handled.map(({ order }) => order))).toEqual(new Set([10, 20]))
    const { confirmations } = await source.confirmations({ limit: 10 })
    expect(confirmations.map(({ replayId }) => replayId).toSorted()).toEqual([
      'replay-1',
      'replay-2',
    ])
  })

  it('confirm the replay of a job that BullMQ removes on completion', async () => {
    const shop = aShop()
    const { queue, source, handled } = shop
    await queue.add('charge', { order: 7 }, { removeOnComplete: true })
    await failed(queue, 1)
    const [deadLetter] = await ingest(source)
    if (deadLetter === undefined) throw new Error('no dead letter')
    shop.isDown = false
    await source.publish({ deadLetter, replayId: 'replay-1' })
    await until('it is handled', () => handled.length > 0)
    const confirmations = async () => (await source.confirmations({ limit: 10 })).confirmations
    const found = await until('it is confirmed', confirmations, { accept: (all) => all.length > 0 })
    expect(found).toMatchObject([{ replayId: 'replay-1', outcome: 'handled' }])
  })

  it('are not retried when another program has retried them', async () => {
    const shop = aShop()
    const { queue, source, handled } = shop
    await queue.add('charge', { order: 7 })
    await failed(queue, 1)
    const [deadLetter] = await ingest(source)
    if (deadLetter === undefined) throw new Error('no dead letter')
    shop.isDown = false
    await (await queue.getJob(deadLetter.delivery.id))?.retry('failed')
    await until('it is handled', () => handled.length > 0)
    await expect(source.publish({ deadLetter, replayId: 'replay-1' })).rejects.toMatchObject({
      code: 'REFUSED',
    })
    expect(handled).toHaveLength(1)
    await expect(source.putBack([deadLetter])).rejects.toMatchObject({ code: 'REFUSED' })
  })

  it('that fail again after another program retried them are new dead letters', async () => {
    const { queue, source } = aShop()
    await queue.add('charge', { order: 7 })
    await failed(queue, 1)
    const [first] = await ingest(source)
    await (await queue.getJob(first?.delivery.id ?? ''))?.retry('failed')
    let again: readonly DrainedDeadLetter[] = []
    await until('it failed again', async () => {
      again = await ingest(source)
      return again.length > 0
    })
    expect(again).toMatchObject([{ delivery: { id: first?.delivery.id, cycle: { number: 2 } } }])
    expect(again[0]?.delivery.replayId).toBeUndefined()
  })

  it('are drained again after they are put back', async () => {
    const { queue, source } = aShop()
    await queue.add('charge', { order: 7 })
    await failed(queue, 1)
    const drained = await ingest(source)
    await source.putBack(drained)
    expect(await ingest(source)).toEqual(drained)
  })

  it('are read completely when thousands are failed, also with the client of @redis/client', async () => {
    const nodeRedis = createClient({ url })
    await nodeRedis.connect()
    onTestFinished(() => nodeRedis.close())
    const queue = new Queue<Order>(`orders-${randomUUID()}`, { connection: nodeRedis })
    const source = bullmqSource({ client: nodeRedis, queue })
    onTestFinished(async () => {
      await queue.obliterate({ force: true })
      await queue.close()
    })
    const ids = Array.from({ length: 2_600 }, (_, i) => String(i))
    // Written as BullMQ does: a worker would need minutes for this number.
    const pipeline = client.pipeline()
    for (const id of ids) {
      pipeline.hset(queue.toKey(id), { name: 'charge', data: '{"order":1}', opts: '{}', atm: '1' })
      pipeline.hset(queue.toKey(id), { timestamp: '1', finishedOn: id, failedReason: 'no' })
      pipeline.zadd(queue.toKey('failed'), Number(id), id)
    }
    await pipeline.exec()
    const seen = new Set<string>()
    await until('all are drained', async () => {
      const batch = await source.drain({ limit: 1_000 })
      for (const { delivery } of batch.deadLetters) {
        expect(seen).not.toContain(delivery.id)
        seen.add(delivery.id)
      }
      await batch.release()
      return seen.size === ids.length
    })
    expect(await source.depth()).toBe(0)
  })
})
