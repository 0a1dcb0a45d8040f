import { type fetchV17, IS_CONTROL, IS_TRANSACTIONAL } from '@platformatic/kafka'
import type { KafkaRecord } from '../delivery.ts'
import type { TopicPartition } from './topic-partition.ts'

type PartitionAnswer = fetchV17.FetchResponsePartition
type Batch = NonNullable<PartitionAnswer['records']>[number]

/** Batch attribute: the timestamp is the time of the broker, not of the producer. */
const IS_STORED_TIME = 0b1000

interface Position extends TopicPartition {
  readonly position: number
}

interface FetchedRecords {
  readonly records: readonly KafkaRecord[]
  /** The next position. */
  readonly next: number
}

/** Returns the records from a position on. A batch may start before the position, or contain no readable record. */
export function fetchedRecords(
  { topic, partition, position }: Position,
  answer: PartitionAnswer,
): FetchedRecords {
  const records: KafkaRecord[] = []
  let next = position
  const isAborted = abortedIn(answer)
  for (const batch of answer.records ?? []) {
    const first = Number(batch.firstOffset)
    const last = first + batch.lastOffsetDelta
    if (last >= next) next = last + 1
    if (isAborted(batch) || (batch.attributes & IS_CONTROL) !== 0) continue
    const isStoredTime = (batch.attributes & IS_STORED_TIME) !== 0
    for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
      const offset = first + offsetDelta
      if (offset < position) continue
      const timestamp = isStoredTime ? batch.maxTimestamp : batch.firstTimestamp + timestampDelta
      records.push({
        topic,
        partition,
        offset,
        timestamp: Number(timestamp),
        key: key ?? null,
        value: value ?? null,
        headers: headers as unknown as KafkaRecord['headers'],
      })
    }
  }
  return { records, next }
}

/** Returns whether this is an abort marker: after two bytes of version, 0 is an abort and 1 a commit. */
const isAbortMarker = ({ records }: Batch) => records[0]?.key?.readInt16BE(2) === 0

/**
 * Returns a function that checks whether a batch belongs to an aborted transaction. The broker lists aborted
 * transactions by their first offset. They end at their marker, which may be in a later response.
 */
function abortedIn({ abortedTransactions }: PartitionAnswer): (batch: Batch) => boolean {
  const ahead = [...(abortedTransactions ?? [])].sort((a, b) =>
    a.firstOffset < b.firstOffset ? -1 : 1,
  )
  const aborted = new Set<bigint>()
  return (batch) => {
    const { firstOffset, lastOffsetDelta, producerId, attributes } = batch
    while (
      ahead[0] !== undefined &&
      ahead[0].firstOffset <= firstOffset + BigInt(lastOffsetDelta)
    ) {
      aborted.add((ahead.shift() as (typeof ahead)[number]).producerId)
    }
    if ((attributes & IS_TRANSACTIONAL) === 0) return false
    const isAborted = aborted.has(producerId)
    if ((attributes & IS_CONTROL) !== 0 && isAbortMarker(batch)) aborted.delete(producerId)
    return isAborted
  }
}
