import kafkajsModule, { type Batch, type EachBatchPayload, type Producer } from 'kafkajs'
import type { Contender, Stage } from './contender.ts'

/** The same interval as Redrive's. */
const COMMIT_EVERY_MS = 100
/** 10 ms: it sleeps this long while it is paused, and the sample has started when it wakes up. */
const WAIT_MS = 10
const ALL_REPLICAS = -1

/** Handles records whose handlers threw; resolves when their offsets may be committed. */
type OnFailures = (batch: Batch, failed: readonly Batch['messages'][number][]) => Promise<void>

/** Processes each batch in slices that together have the same number in flight as the others. */
async function loop(
  { hosts, topic, group, partitions, concurrency, handler }: Stage,
  onFailures: (client: kafkajsModule.Kafka) => Promise<{ act: OnFailures; close(): Promise<void> }>,
): Promise<Contender> {
  const client = new kafkajsModule.Kafka({
    clientId: 'kafkajs',
    brokers: [...hosts],
    logLevel: kafkajsModule.logLevel.NOTHING,
  })
  const failures = await onFailures(client)
  const consumer = client.consumer({
    groupId: group,
    maxWaitTimeInMs: WAIT_MS,
    maxBytes: 8_388_608,
    maxBytesPerPartition: 1_048_576,
  })
  const slice = Math.ceil(concurrency / partitions)
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    partitionsConsumedConcurrently: partitions,
    eachBatchAutoResolve: false,
    autoCommitInterval: COMMIT_EVERY_MS,
    async eachBatch(payload: EachBatchPayload) {
      const { batch } = payload
      const { messages } = batch
      for (let from = 0; from < messages.length; from += slice) {
        const some = messages.slice(from, from + slice)
        const results = await Promise.allSettled(some.map(() => handler()))
        const failed = some.filter((_, index) => results[index]?.status === 'rejected')
        if (failed.length > 0) await failures.act(batch, failed)
        payload.resolveOffset((some.at(-1) as (typeof some)[number]).offset)
        await payload.heartbeat()
        await payload.commitOffsetsIfNecessary()
      }
    },
  })
  return {
    start: () => consumer.resume([{ topic }]),
    stop: () => consumer.pause([{ topic }]),
    async close() {
      await consumer.disconnect()
      await failures.close()
    },
  }
}

export const kafkajs = (stage: Stage): Promise<Contender> =>
  loop(stage, async () => ({ act: async () => {}, close: async () => {} }))

/** Copies failed records to the failure topic, one slice at a time. */
export const kafkajsHandedOff = (stage: Stage): Promise<Contender> =>
  loop(stage, async (client) => {
    const producer: Producer = client.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    return {
      async act({ partition }, failed) {
        const messages = failed.map(({ key, value }) => ({
          partition,
          key,
          value,
          headers: { error: 'declined' },
        }))
        await producer.send({ topic: stage.failedTo, acks: ALL_REPLICAS, messages })
      },
      close: () => producer.disconnect(),
    }
  })
