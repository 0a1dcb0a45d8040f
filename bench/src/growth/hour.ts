// Everything at the same time on a large catalog: ingest, reads and replays. Does it stay as fast,
// does memory stay flat, and does every message arrive?
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { urlOf } from '@redrive/dev-support'
import { rabbitmq } from '@redrive/rabbitmq'
import { type Consumer, consume } from '@redrive/runtime'
import { filled } from '../catalog/filled.ts'
import type { Overrides } from '../comparison.ts'
import type { Gauge } from '../gauge.ts'
import { Broker, brokerUrl } from '../rabbitmq/broker.ts'
import { dropLeftovers } from '../postgres/database.ts'
import { asking, type World, worldOf } from '../server/asking.ts'
import { type Producer, produce, type Program, startServer } from '../server/programs.ts'
import { hourGauge } from './hour-gauge.ts'
import { progress } from './progress.ts'

const COUNT = 10_000_000
const QUICK_COUNT = 50_000
const MINUTES = 60
const QUICK_MINUTES = 1
/** A quarter of the rate of `pnpm bench server`, because replays need the same two cores. */
const READS_PER_SECOND = 50
/** 180,000 in an hour, and each is also replayed. */
const INGEST_PER_SECOND = 50
/** Not counted: a new process compiles the code that it runs for the first time. */
const WARM_SECONDS = 10
/** A run of about 500 items every 10 s. */
const RUN_EVERY_MS = 10_000
/** Two minutes after the last dead letter, all must have been replayed. */
const DRAIN_MS = 120_000
const LOOK_MS = 500
const NAME = 'live'
const ROLES = ['api', 'ingest', 'replay,watch']

export async function hour({ quick, minutes, seed = 1 }: Overrides): Promise<Gauge> {
  await dropLeftovers()
  const many = await filled(quick ? QUICK_COUNT : COUNT)
  try {
    progress(`hour: filled in ${many.seconds.toFixed(0)} s, ${many.megabytes.toFixed(0)} MB`)
    const seconds = (minutes ?? (quick ? QUICK_MINUTES : MINUTES)) * 60
    return await loaded(await worldOf(many), seconds, seed)
  } finally {
    await many.close()
  }
}

async function loaded(world: World, seconds: number, seed: number): Promise<Gauge> {
  const broker = await Broker.open(await brokerUrl())
  const queue = `redrive-benchmark-hour-${randomBytes(4).toString('hex')}`
  await broker.declare(queue)
  const handled = new Map<string, number>()
  const consumer = await replayConsumer(broker.url, queue, handled)
  const amqp = await urlOf('rabbitmq', 'amqp')
  // Redrive's queue for dead letters exists already, so the producer gets another one.
  const deadLetters = `${queue}.failed`
  const producer = await produce(amqp, deadLetters, INGEST_PER_SECOND)
  const programs: Program[] = []
  try {
    const config = configOf(world, { url: amqp, queue, deadLetterQueues: [deadLetters] })
    for (const roles of ROLES) programs.push(await startServer(roles, config))
    const [api] = programs as [Program]
    const asked = { seconds, perSecond: READS_PER_SECOND, seed, programs }
    await asking(api, world, { ...asked, seconds: WARM_SECONDS, seed: seed + 1 })
    const replays = replayRepeatedly(world)
    const reporting = setInterval(
      () => progress(`hour: ${producer.sent()} sent, ${handled.size} replayed`),
      60_000,
    )
    const load = await asking(api, world, asked).finally(() => clearInterval(reporting))
    await replays.stop()
    producer.pause()
    await drained(world, producer, handled)
    const sent = producer.sent()
    const seen = [...handled.values()]
    return hourGauge({
      ...{ count: world.count, seconds, roles: ROLES, load, sent, runs: replays.planned() },
      lost: sent - handled.size,
      twice: seen.filter((times) => times > 1).length,
    })
  } finally {
    await producer.stop()
    await Promise.all(programs.map((one) => one.stop()))
    await consumer.stop()
    await broker.delete(queue)
    await broker.close()
  }
}

const configOf = ({ database }: World, source: object) => ({
  database: { url: database.url },
  auth: { development: {} },
  migrate: true,
  limits: { requestsPerMinute: 1_000_000 },
  sources: { [NAME]: { rabbitmq: source } },
})

/** Counts each replayed message, and confirms it. */
function replayConsumer(
  url: string,
  queue: string,
  handled: Map<string, number>,
): Promise<Consumer> {
  const handler = async ({ id }: { readonly id: string }) => {
    handled.set(id, (handled.get(id) ?? 0) + 1)
  }
  return consume(rabbitmq({ url, queue }), handler)
}

interface Replays {
  planned(): number
  stop(): Promise<void>
}

/** Replays all open dead letters of the source again and again. */
function replayRepeatedly(world: World): Replays {
  let planned = 0
  let isStopped = false
  const stopping = new AbortController()
  const work = async () => {
    while (!isStopped) {
      if (await replayOpen(world)) planned += 1
      await sleep(RUN_EVERY_MS, undefined, { signal: stopping.signal }).catch(ignoreAbort)
    }
  }
  const ended = work()
  // The caller receives the error from `stop`.
  ended.catch(() => undefined)
  return {
    planned: () => planned,
    stop() {
      isStopped = true
      stopping.abort()
      return ended
    },
  }
}

function ignoreAbort(error: unknown): void {
  if ((error as Error).name !== 'AbortError') throw error
}

/** Plans and approves one run. Returns false if no dead letter is open. */
async function replayOpen({ made }: World): Promise<boolean> {
  const query = { after: 0, sources: [NAME] }
  const { deadLetters } = await made.deadLetters({ ...query, limit: 1 })
  if (deadLetters.length === 0) return false
  const { id, hash } = await made.replays.plan({
    selection: { query },
    by: 'bench',
    ratePerSecond: 1_000,
    canary: [],
    onUnconfirmed: 'continue',
    proof: 'confirmations',
  })
  await made.replays.approve(id, { hash, by: 'another' })
  return true
}

/** Replays the rest until the consumer has handled every dead letter, or until the time ends. */
async function drained(
  world: World,
  producer: Producer,
  handled: ReadonlyMap<string, number>,
): Promise<void> {
  const endsAt = performance.now() + DRAIN_MS
  while (handled.size < producer.sent() && performance.now() < endsAt) {
    await replayOpen(world)
    await sleep(LOOK_MS)
  }
}
