import { randomUUID } from 'node:crypto'
import { createClient } from '@redis/client'
import { urlOf } from '@redrive/dev-support'
import { redisStream } from '@redrive/redis'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { type Job, Queue, Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXIT } from '../src/exit.ts'
import { type Desk, openDesk } from './desk.ts'

interface Order {
  readonly order: number
}

const NO_CUSTOMER: unknown = expect.stringMatching(/^order \d has no customer$/)

/** Failed jobs of BullMQ and dead letters of a stream, with the command line and a real server. */
describe('Redis', () => {
  const jobs = `jobs-${randomUUID()}`
  const stream = `orders-${randomUUID()}`
  const handled: string[] = []
  let url = ''
  let isBroken = true
  let desk: Desk

  function charge(source: string, { order }: Order): void {
    if (isBroken) throw new TypeError(`order ${order} has no customer`)
    handled.push(`${source} ${order}`)
  }

  beforeAll(async () => {
    desk = await openDesk('redis')
    url = await urlOf('redis')
    const client = await createClient({ url }).connect()
    desk.atEnd(() => client.destroy())
    const queue = new Queue<Order>(jobs, { connection: client })
    const worker = new Worker<Order>(jobs, async ({ data }: Job<Order>) => charge('job', data), {
      connection: client,
    })
    desk.atEnd(async () => {
      await worker.close()
      await queue.obliterate({ force: true })
    })
    await queue.addBulk([1, 2, 3].map((order) => ({ name: 'charge', data: { order } })))
    for (const order of [4, 5]) {
      await client.xAdd(stream, '*', {
        body: `{"order":${order}}`,
        'content-type': 'application/json',
      })
    }
    const consumer = await consume(
      redisStream({ client, stream, group: 'billing' }),
      ({ body }) => charge('entry', body as Order),
      { logger: 'off', retry: { attempts: 1 } },
    )
    desk.atEnd(() => consumer.stop())
    await until('three jobs are failed', async () => (await queue.getFailedCount()) === 3)
    await until(
      'two entries are dead letters',
      async () => (await client.xLen(`{${stream}}:billing:dlq`)) === 2,
    )
  }, 120_000)
  afterAll(() => desk.close(), 60_000)

  test('a doctor checks the settings of the server', async () => {
    const { code, stdout } = await desk.redrive('doctor', url)
    expect(code).toBe(EXIT.failure)
    expect(stdout).toContain('redis.append-fsync')
    expect(stdout).toContain('appendfsync everysec')
  }, 60_000)

  test('a peek groups failed jobs and dead letters, and takes none', async () => {
    for (const [name, count] of [
      [jobs, 3],
      [`{${stream}}:billing:dlq`, 2],
    ] as const) {
      for (let time = 0; time < 2; time++) {
        const seen = await desk.json<{ total: number; groups: readonly unknown[] }>(
          'peek',
          url,
          name,
        )
        expect(seen).toMatchObject({
          total: count,
          groups: [{ count, message: NO_CUSTOMER }],
        })
      }
    }
    const missing = await desk.redrive('peek', url, 'no-such-queue')
    expect(missing.code).not.toBe(0)
    expect(missing.stderr).toContain('"no-such-queue" does not exist')
  }, 60_000)

  test('a server groups them and replays them, and each is handled once', async () => {
    await desk.serve({
      jobs: { bullmq: { url, queue: jobs } },
      stream: { redis: { url, stream, group: 'billing' } },
    })
    const found = await until('a group for each source', desk.groups, {
      accept: (all) => all.reduce((sum, { openCount }) => sum + openCount, 0) === 5,
    })
    expect(found.map(({ source }) => source).toSorted()).toEqual(['jobs', 'stream'])

    isBroken = false
    for (const group of found) {
      const { code, stdout } = await desk.replay(group)
      expect(code).toBe(0)
      expect(stdout).toMatch(/resolved/)
    }
    expect(handled.toSorted()).toEqual(['entry 4', 'entry 5', 'job 1', 'job 2', 'job 3'])
    await until('no dead letter is open', async () =>
      (await desk.groups()).every(({ openCount }) => openCount === 0),
    )
  }, 120_000)
})
