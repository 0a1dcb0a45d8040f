import type { MessageRecord, produceV11 } from '@platformatic/kafka'
import { appendTimeOf, TIME_RECORD } from '../delivery.ts'
import { messageOf } from '../publish.ts'
import type { Client } from './client.ts'
import type { TopicPartition } from './topic-partition.ts'

/** The leader answers without waiting for its replicas: a lost time record does no harm. */
const ACKS_LEADER = 1
const TIMEOUT_MS = 5_000

/** Stores a time record. Returns the time of the broker when it stored it; undefined in a topic with timestamps of producers. */
export async function storeTimeRecord(
  client: Client,
  to: TopicPartition,
): Promise<number | undefined> {
  const { topics } = await client.metadata([to.topic])
  const leader = topics.get(to.topic)?.partitions[to.partition]?.leader ?? NO_LEADER
  const message = messageOf(to, TIME_RECORD).message as MessageRecord
  try {
    const answer = await client.ask('Produce', leader, ACKS_LEADER, TIMEOUT_MS, [message])
    const { responses } = answer as produceV11.ProduceResponse
    return appendTimeOf(Number(responses[0]?.partitionResponses[0]?.logAppendTimeMs))
  } catch (error) {
    client.forget()
    throw error
  }
}

const NO_LEADER = -1
