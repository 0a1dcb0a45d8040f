// Sends mixed reads at a fixed rate, whether or not the responses keep up, during an ingest.
import { randomBytes } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { migrate as migrateOutbox } from '@redrive/postgres'
import { type SeededRandom, seededRandom } from '@redrive/testing'
import type { Overrides } from '../comparison.ts'
import { DAYS, filled, type Filled } from '../catalog/filled.ts'
import { type Gauge, judgeFigure } from '../gauge.ts'
import { aligned } from '../report.ts'
import { median, quantile } from '../stats.ts'
import { produce, type Program, startServer } from './programs.ts'

const COUNT = 5_000_000
const QUICK_COUNT = 50_000
const SECONDS = 300
const QUICK_SECONDS = 20
const PER_SECOND = 200
/** Not counted: a new process compiles the code that it runs for the first time. */
const WARM_SECONDS = 10
/** Dead letters per second on a bad day. */
const INGEST_PER_SECOND = 100
const P99_MS = 100
/** 10 % more than after the warm-up: the growth from a leak of one page in a thousand responses. */
const MEMORY_SHARE = 1.1
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

interface Mixed {
  readonly name: string
  /** Share in 100 requests. */
  readonly share: number
  readonly path: (world: World, random: SeededRandom) => string
}

interface World extends Filled {
  /** Ids of some dead letters. */
  readonly ids: readonly string[]
}

const groupOf = ({ groups }: World, random: SeededRandom) => groups[random.int(groups.length)] ?? ''
const hourOf = ({ start }: World, random: SeededRandom) =>
  start + HOUR_MS + random.int(DAYS * DAY_MS - 3 * HOUR_MS)

const MIX: readonly Mixed[] = [
  { name: 'overview', share: 10, path: () => 'overview' },
  { name: 'groups', share: 20, path: () => 'groups?hasOpen=true&order=open_count' },
  { name: 'one group', share: 10, path: (w, r) => `groups/${groupOf(w, r)}` },
  {
    name: 'page of a group',
    share: 20,
    path: (w, r) => `dead-letters?filter=group:${groupOf(w, r)}`,
  },
  {
    name: 'page of an hour',
    share: 10,
    path(world, random) {
      const after = hourOf(world, random)
      return `dead-letters?filter=after:${after}%20before:${after + HOUR_MS}`
    },
  },
  {
    name: 'by key',
    share: 10,
    path: ({ count }, random) => `dead-letters?filter=key:m-${random.int(count)}`,
  },
  // With its body. The audit log gets an entry before the body is shown.
  {
    name: 'one dead letter',
    share: 10,
    path: ({ ids }, random) => `dead-letters/${ids[random.int(ids.length)]}`,
  },
  {
    name: 'trend of a group',
    share: 10,
    path(world, random) {
      const before = world.start + DAYS * DAY_MS
      return `trend?per=hour&after=${before - 7 * DAY_MS}&before=${before}&groups=${groupOf(world, random)}`
    },
  },
]

export async function loading({ quick, seed = 1 }: Overrides): Promise<Gauge> {
  const many = await filled(quick ? QUICK_COUNT : COUNT)
  try {
    const { rows } = await many.pool.query<{ id: string }>(
      'select id from redrive_catalog.dead_letter order by md5(id::text) limit 2000',
    )
    const world = { ...many, ids: rows.map(({ id }) => id) }
    await migrateOutbox(many.pool)
    return await loaded(world, quick ? QUICK_SECONDS : SECONDS, seed)
  } finally {
    await many.close()
  }
}

async function loaded(world: World, seconds: number, seed: number): Promise<Gauge> {
  const amqp = await urlOf('rabbitmq', 'amqp')
  const queue = `bench-server-${randomBytes(4).toString('hex')}`
  const config = {
    database: { url: world.database.url },
    auth: { development: {} },
    migrate: true,
    limits: { requestsPerMinute: 1_000_000 },
    sources: { live: { rabbitmq: { url: amqp, queue, deadLetterQueues: [`${queue}.dlq`] } } },
  }
  const producer = await produce(amqp, `${queue}.dlq`, INGEST_PER_SECOND)
  const api = await startServer('api', config)
  const ingest = await startServer('ingest,watch', config)
  try {
    await asking(api, world, WARM_SECONDS, seed + 1)
    const load = await asking(api, world, seconds, seed)
    const sent = producer.sent()
    return gaugeOf(world, load, { seconds, sent, ingested: await ingestedOf(world) })
  } finally {
    await producer.stop()
    await api.stop()
    await ingest.stop()
  }
}

async function ingestedOf({ pool }: World): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select coalesce(sum(g.count), 0)::int as count from redrive_catalog.failure_group g
      join redrive_catalog.source s on s.id = g.source_id where s.name = 'live'`,
  )
  return rows[0]?.count ?? 0
}

interface Load {
  readonly times: ReadonlyMap<string, number[]>
  readonly errors: readonly string[]
  /** Memory in MB for each second. */
  readonly memory: readonly number[]
}

/**
 * Sends requests; the time counts from when a request was due, so it includes the wait for its
 * turn.
 */
async function asking(api: Program, world: World, seconds: number, seed: number): Promise<Load> {
  const random = seededRandom(seed)
  const times = new Map<string, number[]>(MIX.map(({ name }) => [name, []]))
  const errors: string[] = []
  const memory: number[] = []
  const inFlight = new Set<Promise<void>>()
  const beganAt = performance.now()
  const ask = async (dueAt: number) => {
    const { name, path } = drawn(random)
    const response = await fetch(`${api.url}/api/v1/${path(world, random)}`)
    const text = await response.text()
    if (response.status !== 200) errors.push(`${response.status} ${name}: ${text.slice(0, 200)}`)
    times.get(name)?.push(performance.now() - dueAt)
  }
  let requested = 0
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsed = performance.now() - beganAt
      for (; requested < Math.min(elapsed / 1_000, seconds) * PER_SECOND; requested++) {
        const one = ask(beganAt + (requested * 1_000) / PER_SECOND).catch((error: unknown) => {
          errors.push(String(error))
        })
        inFlight.add(one)
        void one.finally(() => inFlight.delete(one))
      }
      if (memory.length < elapsed / 1_000) memory.push(api.memory())
      if (elapsed < seconds * 1_000) return
      clearInterval(timer)
      resolve()
    }, 1)
  })
  await Promise.all(inFlight)
  return { times, errors, memory }
}

function drawn(random: SeededRandom): Mixed {
  let left = random.int(100)
  const found = MIX.find(({ share }) => {
    left -= share
    return left < 0
  })
  return found ?? (MIX[0] as Mixed)
}

interface Beside {
  readonly seconds: number
  readonly sent: number
  readonly ingested: number
}

function gaugeOf(world: World, { times, errors, memory }: Load, during: Beside): Gauge {
  const all = [...times.values()].flat()
  const ms = (value: number) => value.toFixed(1)
  const exactly = (value: number) => ({ median: value, low: value, high: value })
  const row = (name: string, of: readonly number[]) =>
    [
      name,
      String(of.length),
      ...[0.5, 0.95, 0.99, 1].map((share) => ms(quantile(of, share))),
    ] as const
  const { seconds, sent, ingested } = during
  const fifth = Math.max(1, Math.floor(memory.length / 5))
  const growth = median(memory.slice(-fifth)) / median(memory.slice(fifth, 2 * fifth))
  return {
    name: 'server.load',
    summary: `${PER_SECOND} mixed reads each second for ${seconds} s at ${world.count} dead letters, during an ingest of ${INGEST_PER_SECOND}/s`,
    details: [
      aligned([
        ['ms', 'count', 'p50', 'p95', 'p99', 'most'],
        ...[...times].map(([name, of]) => row(name, of)),
        row('all', all),
      ]),
      `${errors.length} errors${errors.length === 0 ? '' : `: ${[...new Set(errors)].slice(0, 3).join('; ')}`}`,
      `memory of the API: ${memory[0]?.toFixed(0)} MB at first, ${median(memory.slice(fifth, 2 * fifth)).toFixed(0)} MB warm, ${median(memory.slice(-fifth)).toFixed(0)} MB in the last fifth`,
      `${ingested} of ${sent} dead letters ingested during this time`,
    ].join('\n'),
    verdicts: [
      judgeFigure({ name: 'p99', unit: 'ms', below: P99_MS }, exactly(quantile(all, 0.99))),
      judgeFigure({ name: 'errors', unit: 'records', below: 1 }, exactly(errors.length)),
      judgeFigure({ name: 'memory-growth', unit: 'x', below: MEMORY_SHARE }, exactly(growth)),
      judgeFigure(
        { name: 'not-ingested', unit: 'records', below: INGEST_PER_SECOND * 5 },
        exactly(sent - ingested),
      ),
    ],
  }
}
