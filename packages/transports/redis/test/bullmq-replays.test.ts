import { urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { bullmqSource } from '../src/index.ts'
import { bullmqShop, failed, ingest } from './shop.ts'

const client = new Redis(await urlOf('redis'), { maxRetriesPerRequest: null })
afterAll(() => client.disconnect())

const REMOVED = { removeOnComplete: true }

/** A queue with one failed job that the catalog has. */
async function aFailedJob(options: object = {}) {
  const shop = bullmqShop(client)
  await shop.queue.add('charge', { order: 7 }, { jobId: 'order-7', ...options })
  await failed(shop.queue, 1)
  const [deadLetter] = await ingest(shop.source)
  if (deadLetter === undefined) throw new Error('no dead letter')
  return { ...shop, shop, deadLetter }
}

/** Adds another job, and waits until the worker has handled it: it handles one after the other. */
async function untilNext({ queue, handled }: ReturnType<typeof bullmqShop>) {
  await queue.add('charge', { order: 8 })
  await until('the next job is handled', () => handled.some(({ order }) => order === 8))
}

describe('a replay that is published again', () => {
  it('has no effect when BullMQ removed the completed job', async () => {
    const { shop, queue, source, handled, deadLetter } = await aFailedJob(REMOVED)
    shop.isDown = false
    await source.publish({ deadLetter, replayId: 'replay-1' })
    await until('the job is removed', async () => (await queue.getJob('order-7')) === undefined)
    await source.publish({ deadLetter, replayId: 'replay-1' })
    await untilNext(shop)
    expect(handled.map(({ order }) => order)).toEqual([7, 8])
  })

  it('has no effect when it added the job again, and that was completed', async () => {
    const { shop, queue, source, handled, deadLetter } = await aFailedJob(REMOVED)
    shop.isDown = false
    await (await queue.getJob('order-7'))?.remove()
    await source.publish({ deadLetter, replayId: 'replay-1' })
    await until('it is handled', () => handled.length === 1)
    await until('it is completed', async () => (await queue.getActiveCount()) === 0)
    await source.publish({ deadLetter, replayId: 'replay-1' })
    await untilNext(shop)
    expect(handled.map(({ order }) => order)).toEqual([7, 8])
  })

  it('runs the job when the first request stopped before BullMQ had it', async () => {
    for (const isRemoved of [false, true]) {
      const { shop, queue, source, handled, deadLetter } = await aFailedJob()
      shop.isDown = false
      if (isRemoved) await (await queue.getJob('order-7'))?.remove()
      const stopped = new Error('the process ended')
      const broken = bullmqSource({
        client,
        queue: {
          name: queue.name,
          toKey: (type) => queue.toKey(type),
          getJob: async (id) => {
            const job = await queue.getJob(id)
            if (job !== undefined) job.retry = () => Promise.reject(stopped)
            return job
          },
          add: () => Promise.reject(stopped),
        },
      })
      const replay = { deadLetter, replayId: 'replay-1' }
      await expect(broken.publish(replay)).rejects.toBe(stopped)
      await source.publish(replay)
      await until('it is handled', () => handled.length === 1)
      const { confirmations } = await until(
        'it is confirmed',
        () => source.confirmations({ limit: 10 }),
        { accept: (batch) => batch.confirmations.length > 0 },
      )
      expect(confirmations).toMatchObject([{ replayId: 'replay-1', outcome: 'handled' }])
    }
  })
})

it('drains no failure between the record of a replay and its start', async () => {
  const { queue, source, deadLetter } = await aFailedJob()
  const drained: string[][] = []
  const watched = bullmqSource({
    client,
    queue: {
      name: queue.name,
      toKey: (type) => queue.toKey(type),
      getJob: async (id) => {
        const job = await queue.getJob(id)
        const retry = job?.retry.bind(job)
        if (job !== undefined) {
          job.retry = async (...args) => {
            drained.push((await ingest(source)).map(({ delivery }) => delivery.id))
            await retry?.(...args)
          }
        }
        return job
      },
      add: (name, data, options) => queue.add(name, data as never, options),
    },
  })
  await watched.publish({ deadLetter, replayId: 'replay-1' })
  expect(drained).toEqual([[]])
  const again = await until('it failed again', () => ingest(source), {
    accept: (found) => found.length > 0,
  })
  expect(again).toMatchObject([{ delivery: { replayId: 'replay-1', cycle: { number: 2 } } }])
})

it('counts a job that failed again after a replay', async () => {
  const { queue, source, deadLetter } = await aFailedJob()
  const { failedAt } = deadLetter.envelope
  await source.publish({ deadLetter, replayId: 'replay-1' })
  await until('it failed again', async () => {
    const at = (await queue.getJob('order-7'))?.finishedOn
    return at !== undefined && String(at) !== failedAt && (await queue.getFailedCount()) === 1
  })
  expect(await source.depth()).toBe(1)
})

it('does not report a failure when the batch of the replayed failure is released late', async () => {
  const shop = bullmqShop(client)
  const { queue, source } = shop
  await queue.add('charge', { order: 7 }, { jobId: 'order-7' })
  await failed(queue, 1)
  const batch = await source.drain({ limit: 1 })
  const [deadLetter] = batch.deadLetters
  if (deadLetter === undefined) throw new Error('no dead letter')
  // The worker handles the job only after the release.
  await queue.pause()
  const released = bullmqSource({
    client,
    queue: {
      name: queue.name,
      toKey: (type) => queue.toKey(type),
      getJob: async (id) => {
        const job = await queue.getJob(id)
        const retry = job?.retry.bind(job)
        if (job !== undefined) {
          job.retry = async (...args) => {
            await batch.release()
            await retry?.(...args)
          }
        }
        return job
      },
      add: (name, data, options) => queue.add(name, data as never, options),
    },
  })
  await released.publish({ deadLetter, replayId: 'replay-1' })
  shop.isDown = false
  await queue.resume()
  const { confirmations } = await until(
    'it is confirmed',
    () => source.confirmations({ limit: 10 }),
    { accept: (found) => found.confirmations.length > 0 },
  )
  expect(confirmations).toMatchObject([{ replayId: 'replay-1', outcome: 'handled' }])
})

it('removes marks, leases and records that are old', async () => {
  const { queue, deadLetter, source } = await aFailedJob({ removeOnComplete: true })
  await source.publish({ deadLetter, replayId: 'replay-1' })
  await failed(queue, 1)
  const replays = queue.toKey('redrive:replays')
  const leases = queue.toKey('redrive:leases')
  const [, record = ''] = Object.entries(await client.hgetall(replays))[0] ?? []
  const old = { ...(JSON.parse(record) as object), recordedAt: Date.now() - 2 * 86_400_000 }
  const oldest = { ...old, recordedAt: 0 }
  await client.hset(replays, { open: JSON.stringify(old), forgotten: JSON.stringify(oldest) })
  await client.hset(replays, { confirmed: `=${JSON.stringify(old)}` })
  await client.hset(leases, { gone: '1:token', held: '9999999999999:token' })
  await (await queue.getJob('order-7'))?.remove()
  await queue.add('charge', { order: 8 })
  await failed(queue, 1)
  // Its first pass ends immediately, and removes what is old.
  const other = bullmqSource({ client, queue })
  await (await other.drain({ limit: 10 })).abandon()
  expect((await client.hkeys(replays)).toSorted()).toEqual(['open', 'order-7'])
  expect(await client.hkeys(leases)).toEqual(['held'])
  expect(await client.hkeys(queue.toKey('redrive:cycles'))).toEqual([])
})

it('only reads without leases: it writes no key, and returns each job once', async () => {
  const { queue } = bullmqShop(client)
  await queue.addBulk([1, 2, 3].map((order) => ({ name: 'charge', data: { order } })))
  await failed(queue, 3)
  const source = bullmqSource({ client, queue, lease: false })
  const batches = [await source.drain({ limit: 1 }), await source.drain({ limit: 10 })]
  expect(batches.map(({ deadLetters }) => deadLetters.length)).toEqual([1, 2])
  for (const batch of batches) await batch.abandon()
  expect(await client.keys(queue.toKey('redrive:*'))).toEqual([])
})
