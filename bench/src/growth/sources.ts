// A server with many sources on one broker: its requests, its polls and its memory.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { catalog } from '@redrive/catalog'
import { rabbitmqSource } from '@redrive/rabbitmq'
import type { Overrides } from '../comparison.ts'
import { PATIENCE_MS } from '../patience.ts'
import { dropLeftovers, ownDatabase, poolOf } from '../postgres/database.ts'
import { brokerUrl, connection } from '../rabbitmq/broker.ts'
import { type Program, startServer } from '../server/programs.ts'
import { repeatedly } from './measuring.ts'
import type { Costs, Stage } from './subject.ts'

const REQUESTS = 15
const QUICK_REQUESTS = 3
const POLLS = 15
const QUICK_POLLS = 5
const IDLE_SAMPLES = 7
/** Four rounds of ingest, and many more of replays. */
const IDLE_MS = 2_000
/** Linux counts steps of 10 ms, so a smaller figure is not known. It must be above zero for the fit. */
const LEAST_CPU_MS = 5
/** The server caches counts for a second. */
const CACHED_MS = 1_050
/** Two rounds of polls and more: the first results are stored, and connections are open. */
const SETTLE_MS = 5_000
/** Connections of a server to its database, by default. */
const POOL = 15

interface Broker {
  readonly url: string
  readonly queue: string
  readonly deadLetters: string
}

export async function openSources({ quick }: Overrides): Promise<Stage> {
  await dropLeftovers()
  const url = await brokerUrl()
  const link = await connection(url)
  const channel = await link.createChannel()
  const queue = `redrive-benchmark-sources-${randomBytes(4).toString('hex')}`
  // One pair of queues for all sources: the broker's cost of a queue is not measured.
  const broker: Broker = { url, queue, deadLetters: `${queue}.dlq` }
  for (const name of [queue, broker.deadLetters]) {
    await channel.assertQueue(name, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  }
  return {
    measure: (size) => measured(broker, size, quick),
    async close() {
      for (const name of [queue, broker.deadLetters]) await channel.deleteQueue(name)
      await link.close()
    },
  }
}

async function measured(broker: Broker, size: number, quick: boolean): Promise<Costs> {
  const database = await ownDatabase()
  try {
    const names = Array.from({ length: size }, (_, number) => `source-${number}`)
    const server = await startServer('api,ingest,replay,watch', {
      database: { url: database.url },
      auth: { development: {} },
      migrate: true,
      limits: { requestsPerMinute: 1_000_000 },
      sources: Object.fromEntries(names.map((name) => [name, { rabbitmq: optionsOf(broker) }])),
    })
    const requests = quick ? QUICK_REQUESTS : REQUESTS
    try {
      await untilListed(server, size)
      await sleep(SETTLE_MS)
      const overview = await requested(server, 'overview', requests)
      const list = await requested(server, 'sources', requests)
      const { memory, idle } = await idleOf(server)
      await server.stop()
      const poll = await polled(broker, database.url, names, quick ? QUICK_POLLS : POLLS)
      return { overview, list, memory, idle, poll }
    } finally {
      await server.stop()
    }
  } finally {
    await database.drop()
  }
}

const optionsOf = ({ url, queue, deadLetters }: Broker) => ({
  url,
  queue,
  deadLetterQueues: [deadLetters],
})

/** The first ingest of a source adds it to the catalog. */
async function untilListed(server: Program, size: number): Promise<void> {
  const endsAt = performance.now() + 2 * PATIENCE_MS
  for (;;) {
    const { sources } = (await json(server, 'sources')) as { readonly sources: readonly unknown[] }
    if (sources.length === size) return
    if (performance.now() > endsAt)
      throw new Error(`The server lists ${sources.length} of ${size} sources.`)
    await sleep(CACHED_MS)
  }
}

async function json(server: Program, path: string): Promise<unknown> {
  const response = await fetch(`${server.url}/api/v1/${path}`)
  if (response.ok) return response.json()
  throw new Error(`${response.status} ${path}: ${(await response.text()).slice(0, 200)}`)
}

async function requested(server: Program, path: string, times: number): Promise<readonly number[]> {
  const all: number[] = []
  for (let turn = 0; turn <= times; turn += 1) {
    await sleep(CACHED_MS)
    const beganAt = performance.now()
    await json(server, path)
    all.push(performance.now() - beganAt)
  }
  return all.slice(1)
}

/** Returns the memory, and the processor time of a second, without requests. */
async function idleOf(server: Program): Promise<{ memory: number[]; idle: number[] }> {
  const memory: number[] = []
  const idle: number[] = []
  for (let turn = 0; turn < IDLE_SAMPLES; turn += 1) {
    const before = { at: performance.now(), cpuMs: server.cpuMs() }
    await sleep(IDLE_MS)
    const used = server.cpuMs() - before.cpuMs
    idle.push(Math.max(LEAST_CPU_MS, (used * 1_000) / (performance.now() - before.at)))
    memory.push(server.memory())
  }
  return { memory, idle }
}

/** Runs one step of the ingest of all sources concurrently, as the background job does. */
async function polled(
  broker: Broker,
  databaseUrl: string,
  names: readonly string[],
  times: number,
): Promise<readonly number[]> {
  const pool = poolOf(databaseUrl, { max: POOL })
  const made = catalog({ pool })
  const sources = names.map((name) => ({ name, source: rabbitmqSource(optionsOf(broker)) }))
  try {
    return await repeatedly(times, () =>
      Promise.all(sources.map(({ name, source }) => made.ingest(source, { name }))),
    )
  } finally {
    await Promise.all(sources.map(({ source }) => source.close()))
    await pool.end()
  }
}
