// Lane order while many keys are stuck: each has one record that failed and waits for its retry, and one
// parked behind it.
import { fixed, type PolicyOptions } from '@redrive/core'
import { kafka } from '@redrive/kafka'
import { consume, type Message } from '@redrive/runtime'
import { until } from '@redrive/testing'
import type { Overrides } from '../comparison.ts'
import type { Gauge } from '../gauge.ts'
import { PATIENCE_MS, patiently } from '../patience.ts'
import { aligned } from '../report.ts'
import { Broker, brokers, ownNames, type RecordOf } from './broker.ts'
import { CONCURRENCY, type Contender, PARTITIONS, recordOf, type Stage } from './contender.ts'
import { Gate } from './gate.ts'
import { ONLY_FAILING } from './redrive.ts'

const STUCK = 'stuck'
const HEADERS = new Map([[Buffer.from('ce_type'), Buffer.from(STUCK)]])

/** In order a retry waits in the process; this one for longer than any run takes. */
const POLICY: PolicyOptions = {
  ...ONLY_FAILING,
  order: 'lane',
  concurrency: CONCURRENCY,
  retry: { attempts: 5, backoff: fixed('1h') },
}

const stuckRecord: RecordOf = (number) => ({
  ...recordOf(number),
  key: Buffer.from(`stuck-${number}`),
  headers: HEADERS,
})

interface Counter {
  readonly stuck: () => number
  /** Resolves when so many have failed. */
  readonly reached: (count: number) => Promise<void>
}

/** A consumer in lane order whose stuck records fail; the others are handled by `handler`. */
async function laneConsumer(stage: Omit<Stage, 'partitions' | 'failedTo' | 'concurrency'>) {
  const { hosts, topic, group, handler, gate } = stage
  const transport = kafka({
    brokers: hosts,
    topic,
    group,
    order: 'lane',
    client: { context: gate },
  })
  let stuck = 0
  let expected = Number.POSITIVE_INFINITY
  let onReached: () => void = () => {}
  const handled = ({ type }: Message) => {
    if (type !== STUCK) return handler()
    stuck += 1
    if (stuck === expected) onReached()
    throw new Error('stuck')
  }
  const consumer = await consume(transport, handled, POLICY)
  const counter: Counter = {
    stuck: () => stuck,
    reached: (count) =>
      new Promise((resolve) => {
        expected = count
        onReached = resolve
        if (stuck >= count) resolve()
      }),
  }
  return { transport, consumer, counter }
}

/** So many keys are stuck before the first sample and stay so. */
export const parking =
  (keys: number) =>
  async (stage: Stage): Promise<Contender> => {
    const { hosts, topic, partitions } = stage
    const { transport, consumer, counter } = await laneConsumer(stage)
    const broker = new Broker(hosts)
    for (let times = 0; times < 2; times += 1) {
      await broker.fill(topic, partitions, keys, stuckRecord)
    }
    await broker.close()
    await patiently(counter.reached(keys), () => `${counter.stuck()} of ${keys} stuck`)
    return {
      isHeldBack: true,
      start: () => consumer.resume(),
      async stop() {
        // Resumed and paused again, what waits for its retry stays where it is.
        consumer.pause()
        await transport.committed()
      },
      close: () => consumer.stop(),
    }
  }

// ---- Memory --------------------------------------------------------------------------------------

const KEYS = 10_000
const QUICK_KEYS = 2_000
/** Of so many records one is stuck: what others were read together with it should not stay, too. */
const SPREAD = 10

interface Memory {
  readonly heap: number
  readonly external: number
}

export async function parkedMemory({ quick }: Overrides): Promise<Gauge> {
  const keys = quick ? QUICK_KEYS : KEYS
  const alone = await taken(keys, 1)
  const spread = await taken(keys, SPREAD)
  const row = (name: string, { heap, external }: Memory) => [
    name,
    (heap / keys).toFixed(0),
    (external / keys).toFixed(0),
    ((heap + external) / 2 ** 20).toFixed(1),
  ]
  return {
    name: 'kafka.parked-memory',
    summary: `${keys} keys, each with one record of 1 KB that failed and one parked behind it`,
    details: aligned([
      ['bytes per key', 'heap', 'external', 'MB in all'],
      row('nothing but them', alone),
      row(`one of ${SPREAD} records`, spread),
    ]),
    verdicts: [],
  }
}

async function taken(keys: number, spread: number): Promise<Memory> {
  const broker = new Broker(await brokers())
  const names = ownNames()
  await broker.declare(PARTITIONS, names.topic)
  const gate = new Gate()
  let others = 0
  const handler = async () => {
    others += 1
  }
  const { consumer, counter } = await laneConsumer({ ...names, hosts: broker.hosts, handler, gate })
  try {
    const mixed: RecordOf = (number) =>
      number % spread === 0 ? stuckRecord(number) : recordOf(number)
    // All is warm and joined, and the code that it needs is compiled.
    await broker.fill(names.topic, PARTITIONS, 1_000, recordOf)
    await until('1,000 records', () => others, {
      accept: (count) => count === 1_000,
      timeout: PATIENCE_MS,
    })
    const before = afterCollection()
    const all = keys * spread
    for (let times = 0; times < 2; times += 1) {
      await broker.fill(names.topic, PARTITIONS, all, mixed)
    }
    const expected = 1_000 + 2 * (all - keys)
    await patiently(counter.reached(keys), () => `${counter.stuck()} of ${keys} stuck`)
    await until(`${expected} records`, () => others, {
      accept: (count) => count === expected,
      timeout: PATIENCE_MS,
    })
    const after = afterCollection()
    return { heap: after.heap - before.heap, external: after.external - before.external }
  } finally {
    await consumer.stop()
    await broker.delete(names)
    await broker.close()
  }
}

/** Twice: the first collection runs finalizers, whose garbage the second one takes. */
function afterCollection(): Memory {
  if (globalThis.gc === undefined) throw new Error('Memory needs node --expose-gc')
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return { heap: heapUsed, external }
}
