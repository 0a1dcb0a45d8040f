import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { dropDatabase, emptyDatabase, freePort, poolOn, urlOf } from '@redrive/dev-support'
import { fileStore } from '@redrive/file-store'
import { migrate as migrateStore, postgresStore } from '@redrive/postgres-store'
import { redisStore } from '@redrive/redis-store'
import {
  createEmitter,
  type DeadLetterStore,
  type OutboundEvent,
  type Sink,
} from '@redrive/runtime'
import { until } from '@redrive/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ended, start } from './child.ts'
import { run } from './world.ts'

const KINDS = ['file', 'redis', 'postgres'] as const
type Kind = (typeof KINDS)[number]
const EVENTS = 4

/** The dead letters of sinks, from all three stores, on a real server. */
describe('dead letters of sinks', () => {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-sinks-'))
  const env: Record<string, string> = { REDRIVE_CONFIG: join(folder, 'redrive.config.json') }
  const ends: (() => unknown)[] = []
  const arrived: Record<Kind, OutboundEvent[]> = { file: [], redis: [], postgres: [] }
  const open = {} as Record<Kind, () => Promise<DeadLetterStore>>
  let isBroken = true

  const redrive = (...args: readonly string[]) => run(args, { env, isRealTime: true })
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { stdout, stderr, code } = await redrive(...args, '--json')
    if (stdout === '') throw new Error(`exit ${code}: ${stderr}`)
    return JSON.parse(stdout) as T
  }
  interface Group {
    readonly id: string
    readonly source: string
    readonly openCount: number
  }
  const groups = async () => (await json<{ groups: readonly Group[] }>('groups', 'list')).groups

  const cycles = async () => {
    const { deadLetters } = await json<{ deadLetters: readonly { cycle: number }[] }>(
      'messages',
      'list',
      'status:open',
    )
    return deadLetters.map(({ cycle }) => cycle)
  }

  /** Rejects each event permanently while it is broken. */
  const sinkOf = (kind: Kind): Sink => ({
    name: 'partner',
    batch: 1,
    async send(events) {
      if (isBroken) throw Object.assign(new Error('unknown customer 17'), { status: 422 })
      arrived[kind].push(...events)
    },
    close: async () => undefined,
  })

  const emitterOf = async (kind: Kind) => {
    const emitter = createEmitter({
      sinks: { partner: sinkOf(kind) },
      store: await open[kind](),
      queue: { maxEvents: 100, onFull: 'store' },
      autoReplay: { schedule: '* * * * * *' },
    })
    ends.push(() => emitter.close({ drain: '1s' }))
    return emitter
  }

  beforeAll(async () => {
    const databaseUrl = await emptyDatabase(`redrive_cli_sinks_${randomUUID().slice(0, 8)}`)
    ends.push(() => dropDatabase(databaseUrl))
    const redisUrl = await urlOf('redis')
    const directory = join(folder, 'dead-letters')
    const prefix = `cli-${randomUUID()}`
    const pool = poolOn(databaseUrl, 4)
    ends.push(() => pool.end())
    await migrateStore(pool)
    open.file = async () => fileStore({ directory })
    open.postgres = async () => postgresStore({ pool, name: 'partners' })
    open.redis = async () => {
      const client = await createClient({ url: redisUrl }).connect()
      ends.push(() => client.destroy())
      return redisStore({ client, prefix, retention: '1h' })
    }
    const port = await freePort()
    writeFileSync(
      env['REDRIVE_CONFIG'] as string,
      JSON.stringify({
        database: { url: databaseUrl },
        listen: `127.0.0.1:${port}`,
        auth: { development: { name: 'dev' } },
        approval: 'anyone',
        sources: {
          file: { fileStore: { directory } },
          redis: { redisStore: { url: redisUrl, prefix } },
          postgres: { postgresStore: { name: 'partners' } },
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
  })

  test('are listed, grouped and replayed, and each event arrives once', async () => {
    for (const kind of KINDS) {
      const emitter = await emitterOf(kind)
      for (let number = 1; number <= EVENTS; number++) {
        const { sinks } = await emitter.emit({
          type: 'order.paid',
          id: `${kind}-${number}`,
          key: `order-${number}`,
          data: { number },
          headers: { tenant: 't1' },
        })
        expect(sinks['partner']).toEqual({ kind: 'stored', reason: 'terminal' })
      }
    }
    expect((await redrive('migrate')).code).toBe(0)
    const server = start(['serve', '--log-level', 'warn'], env)
    const serving = ended(server)
    ends.push(async () => {
      server.kill('SIGTERM')
      await serving
    })
    await until('the server answers', async () => (await redrive('whoami')).code === 0)
    const isGrouped = (found: readonly Group[]) =>
      found.length === KINDS.length && found.every(({ openCount }) => openCount === EVENTS)
    const found = await until('a group for each store', groups, { accept: isGrouped })
    expect(found.map(({ source }) => source).toSorted()).toEqual(['file', 'postgres', 'redis'])
    expect((await redrive('groups', 'list')).stdout).toMatch(/unknown customer/)

    // The catalog has them now, so no store has.
    for (const kind of KINDS) {
      const store = await open[kind]()
      await until('the store is empty', async () => (await store.stats()).count === 0)
      await store.close()
    }

    // The sink still rejects: each event returns as a dead letter of its next cycle.
    await replay(found)
    await until('each replay returned', cycles, {
      accept: (numbers) =>
        numbers.length === KINDS.length * EVENTS && numbers.every((number) => number === 2),
    })
    expect(arrived).toEqual({ file: [], redis: [], postgres: [] })

    isBroken = false
    await replay(await groups())
    for (const kind of KINDS) {
      await until('all events arrived', () => arrived[kind].length === EVENTS)
    }
    // Another run of the schedule of automatic replays, in real time, would send a duplicate.
    for (const kind of KINDS) {
      const store = await open[kind]()
      await until('the store is empty', async () => (await store.stats()).count === 0)
      await store.close()
      const ids = arrived[kind].map(({ id }) => id).toSorted()
      expect(ids).toEqual(Array.from({ length: EVENTS }, (_, index) => `${kind}-${index + 1}`))
      expect(arrived[kind][0]).toMatchObject({ type: 'order.paid', headers: { tenant: 't1' } })
    }
    await until('no dead letter is open', async () =>
      (await groups()).every(({ openCount }) => openCount === 0),
    )
  }, 240_000)

  async function replay(found: readonly Group[]): Promise<void> {
    for (const { id } of found) {
      const { id: planned } = await json<{ id: string }>(
        'replay',
        'plan',
        `group:${id.slice(0, 12)}`,
        '--canary',
        'none',
        '--max-failure-ratio',
        '1',
        // The second replay follows the first one within seconds.
        '--override',
        'failed_recently',
      )
      const started = await redrive('replay', 'start', planned, '--yes')
      expect(started).toMatchObject({ code: 0 })
    }
  }
})
