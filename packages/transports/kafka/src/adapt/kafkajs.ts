import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { type Consumer, type ConsumeOptions, consume, type Handler } from '@redrive/runtime'
import type { TopicPartition } from '../topic-partition.ts'
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

export interface WithRedriveOptions<Body = unknown, Tx = undefined>
  extends ConsumeOptions<Body, Tx> {
  /** The topic to consume. It must exist. */
  readonly topic: string
  /** The group of your consumer. Retries and dead letters belong to a topic and a group. */
  readonly group: string
  /** Yours: you connect it, subscribe it, run it and disconnect it. */
  readonly consumer: KafkaJsConsumer
  /** Yours, connected. Copies are sent with it, to all replicas in sync. */
  readonly producer: KafkaJsProducer
  /**
   * Yours, connected. Makes retry and dead-letter topics that are missing, and remembers across restarts
   * what was finished out of order. Without it the topics must be there, as `topologyOf` says, and such
   * records are handed out again.
   */
  readonly admin?: KafkaJsAdmin
  /** How long a copy may stay unconfirmed before it counts as unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
}

export interface Redriven {
  /** What to subscribe to: the topic and its retry topics. */
  readonly topics: string[]
  /** What to run kafkajs with. The Confluent client wants `autoCommit` elsewhere: give it `eachBatch` only. */
  readonly run: {
    readonly autoCommit: false
    readonly eachBatchAutoResolve: false
    readonly eachBatch: (payload: BatchPayload) => Promise<void>
  }
  /** Statistics, pause and resume. */
  readonly consumer: Consumer
  /** Where there are no events of kafkajs: these partitions go to someone else. */
  revoked(places: readonly TopicPartition[]): Promise<void>
  /** Lets handlers end and commits what is finished. Before you disconnect your consumer. */
  stop: Consumer['stop']
}

/** 10 s: far beyond any healthy answer, short enough that a silent broker is noticed by a person on call. */
const CONFIRM_TIMEOUT_MS = 10_000

/** Runs the handler on what your own consumer reads: the same decisions, retries and dead letters as `kafka`. */
export async function withRedrive<Body = unknown, Tx = undefined>(
  handler: Handler<Body, Tx>,
  options: WithRedriveOptions<Body, Tx>,
): Promise<Redriven> {
  const {
    topic,
    group,
    consumer,
    producer,
    admin,
    confirmTimeout = CONFIRM_TIMEOUT_MS,
    ...rest
  } = options
  const confirmTimeoutMs = parseDuration(confirmTimeout)
  if (confirmTimeoutMs === undefined || confirmTimeoutMs <= 0) {
    const message = `confirmTimeout: expected a duration such as '10s', got ${confirmTimeout}`
    throw new RedriveError('POLICY_INVALID', message, { problems: [message] })
  }
  const adapter = new Adapter({
    topic,
    group,
    consumer,
    producer,
    admin,
    order: rest.order ?? 'none',
    confirmTimeoutMs,
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
    revoked: (places) => adapter.revoked(places),
    stop: (how) => running.stop(how),
  }
}
