import { randomUUID } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { createEmitter, nonFailingProcessor, type Sink } from '@redrive/runtime'
import { type Job, Queue, QueueEvents, Worker } from 'bullmq'
import { expect, it, vi } from 'vitest'
import { ioredis, RedisWorld } from './world.ts'

const url = await urlOf('redis')
const PATIENT = { timeout: 20_000, interval: 20 }

/** A destination without a listener. */
const down: Sink = {
  name: 'loki',
  batch: 10,
  send: () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })),
  healthCheck: () => Promise.reject(new Error('refused')),
  close: () => Promise.resolve(),
}

it('stores the event of a successful BullMQ job with the name of the job, when the sink is down', async () => {
  const world = new RedisWorld(url, ioredis)
  const emitter = createEmitter({
    sinks: { loki: down },
    store: await world.store(),
    queue: { maxEvents: 100, onFull: 'store' },
  })
  const { hostname: host, port } = new URL(url)
  const connection = { host, port: Number(port), maxRetriesPerRequest: null }
  const name = `orders-${randomUUID()}`
  const charge = async (job: Job<{ readonly number: number }>) => {
    await emitter.emit({ type: 'order.paid', data: { number: job.data.number } })
    return `charged ${job.data.number}`
  }
  const queue = new Queue<{ readonly number: number }>(name, { connection })
  const events = new QueueEvents(name, { connection })
  const worker = new Worker(name, nonFailingProcessor(charge), { connection })
  try {
    await events.waitUntilReady()
    const job = await queue.add('charge-card', { number: 7 })
    expect(await job.waitUntilFinished(events, 20_000)).toBe('charged 7')
    expect(await queue.getFailedCount()).toBe(0)

    const store = await world.store()
    const kept = async () =>
      (await store.list({ filter: { job: 'charge-card' }, limit: 2 })).deadLetters
    await vi.waitUntil(async () => (await kept()).length > 0, PATIENT)
    const [deadLetter, ...others] = await kept()
    expect(others).toEqual([])
    expect(deadLetter).toMatchObject({
      sink: 'loki',
      job: 'charge-card',
      event: { type: 'order.paid' },
    })
    expect(Buffer.from(deadLetter?.event.bytes ?? []).toString()).toBe('{"number":7}')
    expect(emitter.stats().jobs['charge-card']).toMatchObject({ stored: 1, lost: 0 })
  } finally {
    await emitter.close()
    await worker.close()
    await events.close()
    await queue.obliterate({ force: true })
    await queue.close()
    await world.close()
  }
})
