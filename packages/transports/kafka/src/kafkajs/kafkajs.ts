import type { Duration } from '@redrive/core'
import { readOptions, withMethods } from '@redrive/core/internal'
import { type Consumer, type ConsumeOptions, consume, type Handler } from '@redrive/runtime'
import { readGroup, readTopic, WAIT } from '../options.ts'
import type { TopicPartition } from '../protocol/topic-partition.ts'
import { Adapter } from './adapter.ts'
import type { BatchPayload, KafkaJsAdmin, KafkaJsConsumer, KafkaJsProducer } from './client.ts'

export type {
  BatchPayload,
  FoundOffsets,
  FoundTopic,
  GroupJoined,
  KafkaJsAdmin,
  KafkaJsConsumer,
  KafkaJsProducer,
  MessageHeaders,
  MessageToSend,
  OffsetToCommit,
  ReceivedMessage,
  TopicPartitions,
  TopicToMake,
} from './client.ts'
export {
  deadLetterTopic,
  replayedTopic,
  retryTopic,
  type Topology,
  type TopicSpec,
  topologyOf,
} from '../topology.ts'

export interface WithRedriveOptions<Body = unknown, Tx = undefined>
  extends ConsumeOptions<Body, Tx> {
  /** The topic to consume. It must exist. */
  readonly topic: string
  /** The group of your consumer. Retries and dead letters belong to a topic and a group. */
  readonly group: string
  /** Your consumer. You connect, subscribe, run and disconnect it. */
  readonly consumer: KafkaJsConsumer
  /** Your connected producer. Redrive sends copies with it, to all replicas in sync. */
  readonly producer: KafkaJsProducer
  /**
   * Your connected admin client. Redrive uses it to create missing retry and dead-letter topics, and to read
   * after a restart which records were finished out of order. Default: none; all topics that `topologyOf`
   * lists must exist, and such records are delivered again.
   */
  readonly admin?: KafkaJsAdmin
  /** Maximum wait for the acknowledgement of a copy. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
}

export interface Redriven {
  /** The topics to subscribe to: the topic and its retry topics. */
  readonly topics: string[]
  /** Options for `run` of kafkajs. For the Confluent client pass only `eachBatch`; it sets `autoCommit` elsewhere. */
  readonly run: {
    readonly autoCommit: false
    readonly eachBatchAutoResolve: false
    readonly eachBatch: (payload: BatchPayload) => Promise<void>
  }
  /** Statistics, pause and resume. */
  readonly consumer: Consumer
  /** Releases partitions that were revoked, for clients without the events of kafkajs. */
  revoked(topicPartitions: readonly TopicPartition[]): Promise<void>
  /** Waits for running handlers and commits finished records. Call it before you disconnect your consumer. */
  stop: Consumer['stop']
}

/** 10 s: much longer than a healthy acknowledgement takes, and short enough to report a broker that does not answer. */
const CONFIRM_TIMEOUT_MS = 10_000

/** Runs the handler for records that your own consumer reads, with the same decisions, retries and dead letters as `kafka`. */
export async function withRedrive<Body = unknown, Tx = undefined>(
  handler: Handler<Body, Tx>,
  options: WithRedriveOptions<Body, Tx>,
): Promise<Redriven> {
  const { own, rest } = splitOptions(options)
  const adapter = new Adapter({
    ...own,
    order: rest.order ?? 'none',
  })
  const running = await consume(adapter, handler, rest as ConsumeOptions<Body, Tx>)
  return {
    topics: [...adapter.topics],
    run: {
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: (payload) => adapter.eachBatch(payload),
    },
    consumer: running,
    revoked: (topicPartitions) => adapter.revoked(topicPartitions),
    stop: (how) => running.stop(how),
  }
}

/** Checks the options of the adapter. `consume` checks the others, which include the handler. */
function splitOptions<Body, Tx>(options: WithRedriveOptions<Body, Tx>) {
  const { topic, group, consumer, producer, admin, confirmTimeout, ...rest } = options
  const given = { topic, group, consumer, producer, admin, confirmTimeout }
  const own = readOptions('withRedrive()', given, (top) => ({
    topic: readTopic(top),
    group: readGroup(top),
    consumer: top.required<KafkaJsConsumer>('consumer', CONSUMER),
    producer: top.required<KafkaJsProducer>('producer', PRODUCER),
    admin: top.ifGiven<KafkaJsAdmin>('admin', ADMIN),
    confirmTimeoutMs: top.duration('confirmTimeout', CONFIRM_TIMEOUT_MS, WAIT),
  }))
  return { own, rest }
}

const CONSUMER = withMethods('a consumer of kafkajs', ['commitOffsets'])
const PRODUCER = withMethods('a producer of kafkajs', ['send'])
const ADMIN = withMethods('an admin client of kafkajs', ['createTopics'])
