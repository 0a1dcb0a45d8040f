import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { dropDatabase, emptyDatabase, freePort, urlOf } from '@redrive/dev-support'
import { redisStream } from '@redrive/redis'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { type Job, Queue, Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ended, start } from './child.ts'
import { run } from './world.ts'

interface Group {
  readonly id: string
  readonly source: string
  readonly openCount: number
}

interface Order {
  readonly order: number
}

const NO_CUSTOMER: unknown = expect.stringMatching(/^order \d has no customer$/)

/** Failed jobs of BullMQ and dead letters of a stream, with the command line and a real server. */
describe('Redis', () => {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-redis-'))
  const env: Record<string, string> = { REDRIVE_CONFIG: join(folder, 'redrive.config.json') }
  const ends: (() => unknown)[] = []
  const jobs = `jobs-${randomUUID()}`
  const stream = `orders-${randomUUID()}`
  const handled: string[] = []
  let url = ''
  let isBroken = true

  const redrive = (...args: readonly string[]) => run(args, { env, isRealTime: true })
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { stdout, stderr, code } = await redrive(...args, '--json')
    if (stdout === '') throw new Error(`exit ${code}: ${stderr}`)
    return JSON.parse(stdout) as T
  }
  const groups = async () => (await json<{ groups: readonly Group[] }>('groups', 'list')).groups

  function charge(source: string, { order }: Order): void {
    if (isBroken) throw new TypeError(`order ${order} has no customer`)
    handled.push(`${source} ${order}`)
  }

  beforeAll(async () => {
    const databaseUrl = await emptyDatabase(`redrive_cli_redis_${randomUUID().slice(0, 8)}`)
    ends.push(() => dropDatabase(databaseUrl))
    url = await urlOf('redis')
    const client = await createClient({ url }).connect()
    ends.push(() => client.destroy())
    const queue = new Queue<Order>(jobs, { connection: client })
    const worker = new Worker<Order>(jobs, async ({ data }: Job<Order>) => charge('job', data), {
      connection: client,
    })
    ends.push(async () => {
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
    ends.push(() => consumer.stop())
    await until('three jobs are failed', async () => (await queue.getFailedCount()) === 3)
    await until(
      'two entries are dead letters',
      async () => (await client.xLen(`{${stream}}:billing:dlq`)) === 2,
    )
    const port = await freePort()
    writeFileSync(
      env['REDRIVE_CONFIG'] as string,
      JSON.stringify({
        database: { url: databaseUrl },
        listen: `127.0.0.1:${port}`,
        auth: { development: { name: 'dev' } },
        approval: 'anyone',
        sources: {
          jobs: { bullmq: { url, queue: jobs } },
          stream: { redis: { url, stream, group: 'billing' } },
        },
        shutdown: { readinessDelay: '0ms' },
        limits: { requestsPerMinute: 100_000 },
      }),
    )
    env['REDRIVE_URL'] = `http://127.0.0.1:${port}`
  }, 120_000)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  test('a peek groups failed jobs and dead letters, and takes none', async () => {
    for (const [name, count] of [
      [jobs, 3],
      [`{${stream}}:billing:dlq`, 2],
    ] as const) {
      for (let time = 0; time < 2; time++) {
        const seen = await json<{ total: number; groups: readonly unknown[] }>('peek', url, name)
        expect(seen).toMatchObject({
          total: count,
          groups: [{ count, message: NO_CUSTOMER }],
        })
      }
    }
    const missing = await redrive('peek', url, 'no-such-queue')
    expect(missing.code).not.toBe(0)
    expect(missing.stderr).toContain('"no-such-queue" does not exist')
  }, 60_000)

  test('a server groups them and replays them, and each is handled once', async () => {
    expect((await redrive('migrate')).code).toBe(0)
    const server = start(['serve', '--log-level', 'warn'], env)
    const serving = ended(server)
    ends.push(async () => {
      server.kill('SIGTERM')
      await serving
    })
    await until('the server responds', async () => (await redrive('whoami')).code === 0, {
      timeout: '60s',
    })
    const found = await until('a group for each source', groups, {
      accept: (all) => all.reduce((sum, { openCount }) => sum + openCount, 0) === 5,
    })
    expect(found.map(({ source }) => source).toSorted()).toEqual(['jobs', 'stream'])

    isBroken = false
    for (const { id } of found) {
      const plan = ['replay', 'plan', `group:${id.slice(0, 12)}`, '--canary', 'none']
      const planned = await json<{ id: string }>(...plan)
      const started = await redrive('replay', 'start', planned.id, '--yes', '--wait')
      expect(started.code).toBe(0)
      expect(started.stdout).toMatch(/resolved/)
    }
    expect(handled.toSorted()).toEqual(['entry 4', 'entry 5', 'job 1', 'job 2', 'job 3'])
    await until('no dead letter is open', async () =>
      (await groups()).every(({ openCount }) => openCount === 0),
    )
  }, 120_000)
})
