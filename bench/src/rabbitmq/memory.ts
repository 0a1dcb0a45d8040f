// Measures whether a consumer with many failures keeps memory for each: memory after a collection,
// over time.
import { setTimeout as sleep } from 'node:timers/promises'
import { business, exponential, type PolicyOptions } from '@redrive/core'
import { deadLetterQueue, rabbitmq } from '@redrive/rabbitmq'
import { type AttemptContext, type Consumer, consume, type Message } from '@redrive/runtime'
import { seededRandom } from '@redrive/testing'
import type { Overrides } from '../comparison.ts'
import { type Gauge, judgeFigure, type Limit } from '../gauge.ts'
import { Declined } from '../handlers.ts'
import { aligned } from '../report.ts'
import { bootstrap, type Estimate, slope } from '../stats.ts'
import { Broker, brokerUrl, ownQueue } from './broker.ts'

const PER_SECOND = 500
/** Time between two bursts of messages. */
const BURST_MS = 20
const MINUTES = 10
const QUICK_MINUTES = 1 / 3
const SAMPLES = 120
const SEED = 1
const RESAMPLES = 2_000
const MEGABYTE = 2 ** 20

/** 1 MB per minute: 35 bytes per message. A leak for each message would be larger. */
const BELOW = 1
const LIMITS = {
  heapMb: { name: 'heap.slope', unit: 'MB/min', below: BELOW },
  rssMb: { name: 'rss.slope', unit: 'MB/min', below: BELOW },
} satisfies Record<string, Limit>

export interface MemorySample {
  readonly minute: number
  readonly heapMb: number
  readonly rssMb: number
}

/**
 * Every guard is on and records, with limits that this share of failures does not reach. Retries
 * wait up to a second, some of them in the process and the rest on the broker.
 */
const POLICY: PolicyOptions = {
  classify: [business(Declined)],
  retry: { backoff: exponential({ base: '1s', cap: '1s' }), maxInlineDelay: '250ms' },
  breaker: { trip: { kind: 'ratio', ratio: 1, minimum: 10_000 } },
  outage: { ratio: 1, failures: 200 },
  retryBudget: { ratio: 10, floorPerSecond: PER_SECOND, ratePerSecond: 100_000, burst: 100_000 },
  flood: { burst: 1_000_000, perMinute: 1_000_000 },
}

export async function memory({ minutes, quick }: Overrides): Promise<Gauge> {
  const samples = await run(minutes ?? (quick ? QUICK_MINUTES : MINUTES))
  return gaugeOf(samples)
}

// ---- Measuring ----------------------------------------------------------------------------------

/** Returns the outcome. Of ten messages seven succeed, two fail once, and one is dead-lettered. */
function fateOf(number: number): 'succeeds' | 'retries' | 'dies' {
  const digit = number % 10
  if (digit < 7) return 'succeeds'
  return digit < 9 ? 'retries' : 'dies'
}

interface Count {
  sent: number
  handled: number
  dead: number
  /** Number of dead letters found in the broker. */
  purged: number
}

async function run(minutes: number): Promise<readonly MemorySample[]> {
  const broker = await Broker.open(await brokerUrl())
  const queue = ownQueue()
  await broker.declare(queue)
  const count: Count = { sent: 0, handled: 0, dead: 0, purged: 0 }
  const consumer = await consumeMixed(broker.url, queue, count)
  try {
    const samples = await sampled(minutes, broker, queue, count)
    await broker.until(queue, () => count.handled + count.dead === count.sent)
    await consumer.stop()
    await expectAll(broker, queue, count)
    return samples
  } finally {
    await consumer.stop()
    await broker.delete(queue)
    await broker.close()
  }
}

function consumeMixed(url: string, queue: string, count: Count): Promise<Consumer> {
  const handler = async ({ id, type }: Message, { attempt }: AttemptContext) => {
    if (type === 'dies') {
      count.dead += 1
      throw new Declined(`order ${id} is declined`)
    }
    if (type === 'retries' && attempt === 1) throw new Error(`order ${id} failed`)
    count.handled += 1
  }
  return consume(rabbitmq({ url, queue }), handler, POLICY)
}

async function sampled(
  minutes: number,
  broker: Broker,
  queue: string,
  count: Count,
): Promise<readonly MemorySample[]> {
  const samples: MemorySample[] = []
  const totalMs = minutes * 60_000
  const startedAt = performance.now()
  for (let nowMs = 0; nowMs < totalMs; nowMs = performance.now() - startedAt) {
    for (; count.sent < (nowMs / 1_000) * PER_SECOND; count.sent += 1) {
      broker.send(queue, { type: fateOf(count.sent) })
    }
    if (nowMs >= (samples.length * totalMs) / SAMPLES) {
      samples.push(afterCollection(nowMs / 60_000))
      // The broker shares the machine, so its queues stay small.
      count.purged += await broker.purge(deadLetterQueue(queue))
    }
    await sleep(BURST_MS)
  }
  return samples
}

/** Collects twice: the first collection runs finalizers, and the second removes their garbage. */
function afterCollection(minute: number): MemorySample {
  if (globalThis.gc === undefined) throw new Error('Memory needs node --expose-gc')
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, rss } = process.memoryUsage()
  return { minute, heapMb: heapUsed / MEGABYTE, rssMb: rss / MEGABYTE }
}

async function expectAll(broker: Broker, queue: string, count: Count): Promise<void> {
  const { ready } = await broker.look(queue)
  if (ready !== 0) throw new Error(`${ready} messages were not acknowledged`)
  const found = count.purged + (await broker.purge(deadLetterQueue(queue)))
  if (found !== count.dead) throw new Error(`${found} dead letters instead of ${count.dead}`)
}

// ---- Judging ------------------------------------------------------------------------------------

/** Ignores the first half, in which caches and compiled code reach their size. */
export function gaugeOf(samples: readonly MemorySample[]): Gauge {
  const late = samples.slice(samples.length / 2)
  const heap = growth(late, 'heapMb')
  const rss = growth(late, 'rssMb')
  return {
    name: 'rabbitmq.memory',
    summary: `after a collection, ${PER_SECOND} messages a second, 30 % of them failing`,
    details: aligned([
      ['minute', 'heap MB', 'rss MB'],
      ...everyTenth(samples).map(({ minute, heapMb, rssMb }) => [
        minute.toFixed(2),
        heapMb.toFixed(2),
        rssMb.toFixed(2),
      ]),
    ]),
    verdicts: [judgeFigure(LIMITS.heapMb, heap), judgeFigure(LIMITS.rssMb, rss)],
  }
}

function growth(samples: readonly MemorySample[], of: 'heapMb' | 'rssMb'): Estimate {
  const points = samples.map((sample) => ({ x: sample.minute, y: sample[of] }))
  return bootstrap(points, slope, seededRandom(SEED), RESAMPLES)
}

function everyTenth(samples: readonly MemorySample[]): readonly MemorySample[] {
  const step = Math.max(1, Math.floor(samples.length / 10))
  return samples.filter((_, index) => index % step === 0 || index === samples.length - 1)
}
