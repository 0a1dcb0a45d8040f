// Lane order while many keys are blocked. Each key has one failed record that waits for its retry,
// and one record parked behind it.
import { fixed, type PolicyOptions } from '@redrive/core'
import { GUARDS_OFF } from '@redrive/dev-support'
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

const STUCK = 'stuck'
const HEADERS = new Map([[Buffer.from('ce_type'), Buffer.from(STUCK)]])

/** A retry in lane order waits in the process; this one waits longer than any run takes. */
const POLICY: PolicyOptions = {
  ...GUARDS_OFF,
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
  /** Resolves when `count` records have failed. */
  readonly reached: (count: number) => Promise<void>
}

/** A consumer in lane order whose blocked records fail; `handler` handles the others. */
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

/** Blocks this number of keys before the first sample; they stay blocked. */
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
        // Pausing and resuming leaves records that wait for a retry where they are.
        consumer.pause()
        await transport.committed()
      },
      close: () => consumer.stop(),
    }
  }

// ---- Memory --------------------------------------------------------------------------------------

const KEYS = 10_000
const QUICK_KEYS = 2_000
/** One in ten records is blocked. Other records read together with it should not stay in memory. */
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
      ['bytes per key', 'heap', 'external', 'MB in total'],
      row('only blocked keys', alone),
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
    // The code is compiled and the group is joined before the measurement.
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

/** Collects twice: the first collection runs finalizers, and the second removes their garbage. */
function afterCollection(): Memory {
  if (globalThis.gc === undefined) throw new Error('Memory needs node --expose-gc')
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return { heap: heapUsed, external }
}
