import { withTimeout } from '@redrive/runtime/internal'
import { existing } from './declare.ts'
import { completed, type KafkaRecord, type OriginalPosition } from './delivery.ts'
import type { Client } from './protocol/client.ts'
import { Fetcher, type Reading } from './protocol/fetcher.ts'

/** 10 s: the broker reads one record, but it may be large. */
const READ_MS = 10_000

/**
 * Completes a dead letter without content by its original. Rejects when the original cannot be read: it was deleted,
 * it must not be read, or the brokers do not answer.
 */
export async function completeFrom(
  client: Client,
  deadLetter: KafkaRecord,
  position: OriginalPosition,
): Promise<KafkaRecord> {
  const original = await readAt(client, position)
  const isSame = original?.offset === position.offset && original.timestamp === position.timestamp
  if (original === undefined || !isSame) throw new Error('Kafka has deleted it.')
  return completed(deadLetter, original)
}

/** Reads the first record at or after an offset; undefined when there is none. */
async function readAt(
  client: Client,
  { topic, partition, offset }: OriginalPosition,
): Promise<KafkaRecord | undefined> {
  const [found] = await existing(client.base, [topic])
  if (found === undefined) return undefined
  const { promise: read, resolve, reject } = Promise.withResolvers<KafkaRecord | undefined>()
  let isWanted = true
  const fetcher = new Fetcher({
    client,
    topics: [topic],
    wanted: () => (isWanted ? [reading] : []),
    onResult: (_, error) => error !== undefined && reject(error),
    onMissing: () => end(),
  })
  const end = (record?: KafkaRecord) => {
    isWanted = false
    resolve(record)
  }
  const reading: Reading = {
    topic,
    partition,
    position: offset,
    take: ([first]) => end(first),
    outOfRange: () => Promise.resolve(end()),
  }
  fetcher.wake()
  try {
    return await withTimeout(read, READ_MS, () => {
      throw new Error(`Kafka did not return it within ${READ_MS} ms.`)
    })
  } finally {
    isWanted = false
    fetcher.stop()
  }
}
