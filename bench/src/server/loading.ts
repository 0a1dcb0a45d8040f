// Sends mixed reads at a fixed rate, whether or not the responses keep up, during an ingest.
import { randomBytes } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import type { Overrides } from '../comparison.ts'
import { filled } from '../catalog/filled.ts'
import { type Gauge, judgeFigure } from '../gauge.ts'
import { aligned } from '../report.ts'
import { median, quantile } from '../stats.ts'
import { asking, type Load, MIX, type World, worldOf } from './asking.ts'
import { produce, startServer } from './programs.ts'

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

export async function loading({ quick, seed = 1 }: Overrides): Promise<Gauge> {
  const many = await filled(quick ? QUICK_COUNT : COUNT)
  try {
    return await loaded(await worldOf(many), quick ? QUICK_SECONDS : SECONDS, seed)
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
    const asked = { seconds, perSecond: PER_SECOND, seed }
    await asking(api, world, { ...asked, seconds: WARM_SECONDS, seed: seed + 1 })
    const load = await asking(api, world, asked)
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

interface Beside {
  readonly seconds: number
  readonly sent: number
  readonly ingested: number
}

function gaugeOf(world: World, { responses, errors, memory: read }: Load, during: Beside): Gauge {
  const all = responses.map(({ ms }) => ms)
  const memory = read[0] ?? []
  const timesOf = (name: string) =>
    responses.filter((one) => one.name === name).map((one) => one.ms)
  const text = (value: number) => value.toFixed(1)
  const exactly = (value: number) => ({ median: value, low: value, high: value })
  const row = (name: string, of: readonly number[]) =>
    [
      name,
      String(of.length),
      ...[0.5, 0.95, 0.99, 1].map((share) => text(quantile(of, share))),
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
        ...MIX.map(({ name }) => row(name, timesOf(name))),
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
