// The lower bounds: handwritten code against @platformatic/kafka, as fast as possible, with
// Redrive's guarantee. An offset is committed when it and all offsets before it are finished.
import { type BaseOptions, Consumer, type Message, Producer } from '@platformatic/kafka'
import type { Contender, Stage } from './contender.ts'

type Record = Message<Buffer, Buffer, Buffer, Buffer>

/** The same interval as Redrive's. */
const COMMIT_EVERY_MS = 100
const FETCH = { maxWaitTime: 250, maxBytes: 8_388_608, maxBytesPerPartition: 1_048_576 }

/** Finished records of one partition: all below the committed offset, and some above it. */
interface Progress {
  mark: number
  committed: number
  readonly above: Set<number>
}

class Marks {
  readonly #progress = new Map<number, Progress>()

  begin({ partition, offset }: Record): void {
    if (this.#progress.has(partition)) return
    const mark = Number(offset)
    this.#progress.set(partition, { mark, committed: mark, above: new Set() })
  }

  finish({ partition, offset }: Record): void {
    const progress = this.#progress.get(partition) as Progress
    const at = Number(offset)
    if (at !== progress.mark) {
      progress.above.add(at)
      return
    }
    progress.mark += 1
    while (progress.above.delete(progress.mark)) progress.mark += 1
  }

  async commit(consumer: Consumer<Buffer, Buffer, Buffer, Buffer>, topic: string): Promise<void> {
    const changed = [...this.#progress].filter(([, { mark, committed }]) => mark > committed)
    if (changed.length === 0) return
    const offsets = changed.map(([partition, progress]) => {
      progress.committed = progress.mark
      return { topic, partition, offset: BigInt(progress.mark), leaderEpoch: -1 }
    })
    await consumer.commit({ offsets })
  }
}

/** Handles a record whose handler threw; resolves when its offset may be committed. */
type OnFailure = (record: Record) => Promise<void>

async function loop(
  { hosts, topic, group, concurrency, handler, gate }: Stage,
  onFailure: OnFailure,
  closeAll: () => Promise<void>,
): Promise<Contender> {
  const consumer = new Consumer({ ...base(hosts), groupId: group, context: gate, ...FETCH })
  const stream = await consumer.consume({
    topics: [topic],
    mode: 'committed',
    fallbackMode: 'earliest',
    autocommit: false,
  })
  const marks = new Marks()
  let inFlight = 0
  let isStarted = false

  const finished = (record: Record) => {
    inFlight -= 1
    marks.finish(record)
    pump()
  }
  const pump = () => {
    while (isStarted && inFlight < concurrency) {
      const record = stream.read() as Record | null
      if (record === null) return
      inFlight += 1
      marks.begin(record)
      handler().then(
        () => finished(record),
        () => void onFailure(record).then(() => finished(record)),
      )
    }
  }
  stream.on('readable', pump)

  let last = Promise.resolve()
  const commit = () => {
    last = last.then(() => marks.commit(consumer, topic))
    return last
  }
  const timer = setInterval(() => void commit(), COMMIT_EVERY_MS)
  return {
    start() {
      isStarted = true
      pump()
    },
    async stop() {
      // All read records are handled by then, and nothing more is read before the next sample.
      await commit()
    },
    async close() {
      clearInterval(timer)
      await last
      await consumer.close(true)
      await closeAll()
    },
  }
}

/** A loop without failure handling: a failure would not be noticed. */
export const bareLoop = (stage: Stage): Promise<Contender> =>
  loop(
    stage,
    async () => {},
    async () => {},
  )

/** Copies failed records to the failure topic: all waiting ones together, one request at a time. */
export async function handedOff(stage: Stage): Promise<Contender> {
  const { hosts, failedTo } = stage
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    ...base(hosts),
    idempotent: true,
    autocreateTopics: false,
  })
  let waiting: { readonly record: Record; readonly resolve: () => void }[] = []
  let isSending = false

  const sendAll = async () => {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await producer.send({ messages: batch.map(({ record }) => copyOf(record, failedTo)) })
      for (const { resolve } of batch) resolve()
    }
    isSending = false
  }
  const onFailure: OnFailure = (record) =>
    new Promise((resolve) => {
      waiting.push({ record, resolve })
      if (isSending) return
      isSending = true
      setImmediate(() => void sendAll())
    })
  return loop(stage, onFailure, () => producer.close())
}

const ERROR = Buffer.from('error')
const DECLINED = Buffer.from('declined')

const copyOf = ({ key, value, partition }: Record, topic: string) => ({
  topic,
  partition,
  key,
  value,
  headers: new Map([[ERROR, DECLINED]]),
})

const base = (hosts: readonly string[]): BaseOptions => ({
  clientId: 'hand-written',
  bootstrapBrokers: [...hosts],
})
