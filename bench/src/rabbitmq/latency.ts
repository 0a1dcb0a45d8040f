// Measures the time of a failed message from the handler's throw until the copy is confirmed and
// the original released. It compares with the time the broker takes to confirm a bare publish.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { business, fixed, type PolicyOptions } from '@redrive/core'
import { deadLetterQueue, rabbitmq } from '@redrive/rabbitmq'
import { type AttemptContext, consume, type Message, onEvent } from '@redrive/runtime'
import { seededRandom } from '@redrive/testing'
import type { Overrides } from '../comparison.ts'
import { type Gauge, type GaugeVerdict, judgeFigure, type Limit } from '../gauge.ts'
import { Declined } from '../handlers.ts'
import { aligned } from '../report.ts'
import { bootstrap, type Estimate, quantile } from '../stats.ts'
import { Broker, brokerUrl, ownQueue } from './broker.ts'

/** Bare publishes appear twice under two names, as in all benchmarks: their difference is noise. */
const KINDS = ['retry', 'confirm', 'deadLetter', 'confirm (again)'] as const
type Kind = (typeof KINDS)[number]

/** One every 2.5 ms: 100 retries and 100 dead letters per second, far from saturation. */
const SLOT_MS = 2.5
const SECONDS = 60
const QUICK_SECONDS = 10
/** Connections, compiled code and the delay queue are created in the first seconds. */
const WARM_UP_SECONDS = 2
const RETRY_DELAY_MS = 1_000
/**
 * 1,000 for p99 of thousands of values: the ends of the interval move by a few percent between
 * seeds.
 */
const RESAMPLES = 1_000
const SEED = 1

const RETRY: Limit = { name: 'retry-confirm.p99', unit: 'ms', below: 10 }
const DEAD_LETTER: Limit = { name: 'deadLetter-confirm.p99', unit: 'ms', below: 5 }
/** Half of the smaller limit: the allowed difference between two measurements of the same operation. */
const NOISE_MS = 2.5

/** Times measured in one second, by kind. */
export type Second = Readonly<Record<Kind, readonly number[]>>

/** No guard may stop or slow the load: half of all messages fail. */
const POLICY: PolicyOptions = {
  classify: [business(Declined)],
  retry: { backoff: fixed(RETRY_DELAY_MS), maxInlineDelay: 0 },
  breaker: 'off',
  outage: 'off',
  adaptiveConcurrency: 'off',
  retryBudget: 'off',
  flood: 'off',
}

export async function latency({ minutes, quick }: Overrides): Promise<Gauge> {
  const seconds = minutes === undefined ? (quick ? QUICK_SECONDS : SECONDS) : minutes * 60
  const timed = await run(seconds + WARM_UP_SECONDS)
  return gaugeOf(timed.slice(WARM_UP_SECONDS))
}

// ---- Measuring ----------------------------------------------------------------------------------

/** Collects times by the second in which they started. */
class Timings {
  readonly seconds: Record<Kind, number[]>[] = []
  readonly #begun = new Map<string, { kind: Kind; at: number; second: number }>()
  #second = 0

  next(second: number): void {
    this.#second = second
    this.seconds[second] ??= { retry: [], confirm: [], deadLetter: [], 'confirm (again)': [] }
  }
  begin(id: string, kind: Kind): void {
    this.#begun.set(id, { kind, at: performance.now(), second: this.#second })
  }
  end(id: string): void {
    const now = performance.now()
    const begun = this.#begun.get(id)
    if (begun === undefined) throw new Error(`${id} ended, but did not start`)
    this.#begun.delete(id)
    this.seconds[begun.second]?.[begun.kind].push(now - begun.at)
  }
  expectAll(sent: Readonly<Record<Kind, number>>): void {
    for (const kind of KINDS) {
      const timed = this.seconds.reduce((sum, second) => sum + second[kind].length, 0)
      if (timed !== sent[kind]) throw new Error(`${timed} of ${sent[kind]} timed: ${kind}`)
    }
  }
}

async function run(seconds: number): Promise<readonly Second[]> {
  const broker = await Broker.open(await brokerUrl())
  // A separate connection, as Redrive's publisher has one.
  const publisher = await Broker.open(broker.url)
  const queue = ownQueue()
  const plain = ownQueue()
  for (const each of [queue, plain]) await broker.declare(each)
  const timings = new Timings()
  const sent: Record<Kind, number> = { retry: 0, confirm: 0, deadLetter: 0, 'confirm (again)': 0 }
  const failing = await consumeFailing(broker.url, queue, timings)
  try {
    await paced(seconds, (kind, second) => {
      timings.next(second)
      sent[kind] += 1
      if (kind === 'retry' || kind === 'deadLetter') broker.send(queue, { type: kind })
      else sendTimed(publisher, plain, kind, timings)
    })
    await broker.until(queue, () => failing.settled() === sent.retry)
    await broker.until(plain, ({ ready }) => ready === sent.confirm + sent['confirm (again)'])
    await broker.until(deadLetterQueue(queue), ({ ready }) => ready === sent.deadLetter)
    timings.expectAll(sent)
  } finally {
    await failing.stop()
    for (const each of [queue, plain]) await broker.delete(each)
    await publisher.close()
    await broker.close()
  }
  return timings.seconds
}

function sendTimed(publisher: Broker, queue: string, kind: Kind, timings: Timings): void {
  const id = randomUUID()
  timings.begin(id, kind)
  publisher.send(queue, {}, () => timings.end(id))
}

/** Fails every first attempt; a returned retry is settled. */
async function consumeFailing(
  url: string,
  queue: string,
  timings: Timings,
): Promise<{ settled(): number; stop(): Promise<void> }> {
  let settled = 0
  const handler = async ({ id, type }: Message, { attempt }: AttemptContext) => {
    if (attempt > 1) {
      settled += 1
      return
    }
    timings.begin(id, type as Kind)
    throw type === 'deadLetter' ? new Declined('declined') : new Error('failed')
  }
  const forget = onEvent((event) => {
    if (event.type !== 'enacted' || event.decision.kind === 'settle') return
    if (event.enactment.kind === 'done') timings.end(event.deliveryId)
  })
  const consumer = await consume(rabbitmq({ url, queue }), handler, POLICY)
  return {
    settled: () => settled,
    stop: async () => {
      await consumer.stop()
      forget()
    },
  }
}

/** Creates an open load: due messages are sent, however long the last one takes. */
async function paced(seconds: number, act: (kind: Kind, second: number) => void): Promise<void> {
  const startedAt = performance.now()
  const slots = (seconds * 1_000) / SLOT_MS
  for (let slot = 0; slot < slots; slot += 1) {
    const waitMs = startedAt + slot * SLOT_MS - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    act(KINDS[slot % KINDS.length] as Kind, Math.floor((slot * SLOT_MS) / 1_000))
  }
}

// ---- Judging ------------------------------------------------------------------------------------

/** Returns the 99th percentile of all seconds together. */
function p99(seconds: readonly Second[], kind: Kind): number {
  return quantile(
    seconds.flatMap((second) => second[kind]),
    0.99,
  )
}

/**
 * Returns the time of a kind minus that of the bare confirm. It resamples whole seconds, because
 * disturbances come in bursts.
 */
function beyondConfirm(seconds: readonly Second[], kind: Kind): Estimate {
  const difference = (some: readonly Second[]) => p99(some, kind) - p99(some, 'confirm')
  return bootstrap(seconds, difference, seededRandom(SEED), RESAMPLES)
}

export function gaugeOf(seconds: readonly Second[]): Gauge {
  const noise = beyondConfirm(seconds, 'confirm (again)')
  const judged = (limit: Limit, kind: Kind): GaugeVerdict =>
    Math.abs(noise.median) > NOISE_MS
      ? { kind: 'noisy', limit, why: `A/A ${noise.median.toFixed(3)} ms` }
      : judgeFigure(limit, beyondConfirm(seconds, kind))
  return {
    name: 'rabbitmq.latency',
    summary: 'from throw to released, 200 failures per second compared with 200 bare publishes',
    details: aligned([
      ['ms', 'count', 'p50', 'p90', 'p99', 'worst', 'p99 - confirm', '95 %'],
      ...KINDS.map((kind) => row(seconds, kind)),
    ]),
    verdicts: [judged(RETRY, 'retry'), judged(DEAD_LETTER, 'deadLetter')],
  }
}

function row(seconds: readonly Second[], kind: Kind): string[] {
  const values = seconds.flatMap((second) => second[kind])
  const { median, low, high } = beyondConfirm(seconds, kind)
  return [
    kind,
    String(values.length),
    ...[0.5, 0.9, 0.99, 1].map((portion) => quantile(values, portion).toFixed(2)),
    median.toFixed(2),
    `${low.toFixed(2)} to ${high.toFixed(2)}`,
  ]
}
