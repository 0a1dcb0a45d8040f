import type { BaseOptions } from '@platformatic/kafka'
import type { Duration } from '@redrive/core'
import { type Check, isRecord, named, readOptions, type Section } from '@redrive/core/internal'
import type { OutboundEvent } from '@redrive/runtime'
import { deadLetterTopic, replayedTopic } from './topology.ts'

export interface KafkaOptions {
  /** `host:port` of some brokers; the client discovers the others. */
  readonly brokers: readonly string[]
  /** The topic to consume. It must exist, because you choose its number of partitions. */
  readonly topic: string
  /** The consumer group. Retries and dead letters belong to a topic and a group. */
  readonly group: string
  /** `'lane'` handles records of one key one after the other, even when one fails and is retried. Default `'none'`. */
  readonly order?: 'none' | 'lane'
  /**
   * `'atLeastOnce'`: after a crash between copy and commit, both the copy and the original exist.
   * `'transactional'`: the retry or dead letter and the commit of its original are one transaction, which
   * costs a few requests per batch of hand-offs. Default `'atLeastOnce'`.
   */
  readonly handOff?: 'atLeastOnce' | 'transactional'
  /** Start position of a group without commits. Default `'earliest'`, which skips nothing. */
  readonly from?: 'earliest' | 'latest'
  /**
   * `'declare'` creates missing retry and dead-letter topics; `'verify'` only checks them.
   * `topologyOf` lists what must exist. Default `'declare'`.
   */
  readonly topology?: 'declare' | 'verify'
  /** Time without heartbeats after which other consumers take over its partitions (at least '1s', default '30s'). */
  readonly sessionTimeout?: Duration
  /** Maximum time for handlers to finish when a partition moves to another consumer. Default '5s'. */
  readonly drainTimeout?: Duration
  /** Maximum wait for the acknowledgement of a copy. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Options of the client library, such as TLS and SASL. Default: none. */
  readonly client?: ClientOptions
}

/** Options of `@platformatic/kafka` without its list of brokers. */
export type ClientOptions = Partial<Omit<BaseOptions, 'bootstrapBrokers'>>

export interface KafkaSourceOptions extends Pick<KafkaOptions, 'brokers' | 'topic' | 'client'> {
  /** The group whose dead letters are drained. */
  readonly group: string
  /** Topics to drain. Default: the dead-letter topic of `topic` and `group`. */
  readonly deadLetterTopics?: readonly string[]
  /** Prefix of the consumer group that the control plane uses to drain. Default 'redrive'. */
  readonly drainGroup?: string
  /** Maximum wait for the acknowledgement of a replay. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
}

export interface KafkaSinkOptions extends Pick<KafkaOptions, 'brokers' | 'client'> {
  /** The topic for events, which must exist, or a function that returns the topic of an event. */
  readonly topic: string | ((event: OutboundEvent) => string)
  /** Maximum wait for the acknowledgement of an event. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
}

export interface ResolvedSinkOptions {
  readonly name: string
  readonly topic: (event: OutboundEvent) => string
  readonly client: BaseOptions
}

export interface ResolvedOptions {
  readonly topic: string
  readonly group: string
  readonly order: 'none' | 'lane'
  readonly isTransactional: boolean
  readonly from: 'earliest' | 'latest'
  readonly isDeclaring: boolean
  readonly sessionMs: number
  readonly drainMs: number
  readonly confirmTimeoutMs: number
  readonly client: BaseOptions
}

export interface ResolvedSourceOptions {
  readonly topic: string
  readonly group: string
  readonly deadLetterTopics: readonly string[]
  readonly confirmationTopic: string
  readonly drainGroup: string
  readonly confirmTimeoutMs: number
  readonly client: BaseOptions
}

/** 30 s: survives a long pause of Node.js, and bounds how long a crashed consumer keeps its partitions. */
const SESSION_MS = 30_000
/** 1 s: with less, a consumer on a busy machine would lose its partitions. */
const MIN_SESSION_MS = 1_000
/** 5 s: most handlers finish within it, and a deployment does not wait longer. */
const DRAIN_MS = 5_000
/** 10 s: much longer than a healthy acknowledgement takes, and short enough to report a broker that does not answer. */
const CONFIRM_TIMEOUT_MS = 10_000

/** Bounds of a wait for the broker. An hour: a longer one is a mistake in the unit. */
export const WAIT: { readonly min: number; readonly max: number } = { min: 1, max: 3_600_000 }

export function resolveOptions(options: KafkaOptions): ResolvedOptions {
  return readOptions('kafka()', options, (top) => {
    const common = readCommon(top, readTopic(top), readGroup(top))
    const handOff = top.choice('handOff', 'atLeastOnce', ['atLeastOnce', 'transactional'])
    const topology = top.choice('topology', 'declare', ['declare', 'verify'])
    const sessionMs = top.duration('sessionTimeout', SESSION_MS, { ...WAIT, min: MIN_SESSION_MS })
    return {
      ...common,
      order: top.choice('order', 'none', ['none', 'lane']),
      from: top.choice('from', 'earliest', ['earliest', 'latest']),
      isTransactional: handOff === 'transactional',
      isDeclaring: topology === 'declare',
      sessionMs,
      drainMs: Math.min(top.duration('drainTimeout', DRAIN_MS, WAIT), sessionMs / 2),
    }
  })
}

/** Options of `kafka()` that `kafkaSource()` does not use. A program may pass one object to both. */
const OF_TRANSPORT = ['order', 'handOff', 'from', 'topology', 'sessionTimeout', 'drainTimeout']

export function resolveSourceOptions(options: KafkaSourceOptions): ResolvedSourceOptions {
  return readOptions('kafkaSource()', options, (top) => {
    for (const key of OF_TRANSPORT) top.raw(key)
    const common = readCommon(top, readTopic(top), readGroup(top))
    const { topic, group } = common
    return {
      ...common,
      deadLetterTopics: top.ifGiven<readonly string[]>('deadLetterTopics', TOPICS) ?? [
        deadLetterTopic(topic, group),
      ],
      confirmationTopic: replayedTopic(topic, group),
      drainGroup: top.ifGiven<string>('drainGroup', named('the prefix of a group')) ?? 'redrive',
    }
  })
}

export function resolveSinkOptions(options: KafkaSinkOptions): ResolvedSinkOptions {
  return readOptions('kafkaSink()', options, (top) => {
    const topic = top.required<KafkaSinkOptions['topic']>('topic', TOPIC_OR_FUNCTION)
    const name = typeof topic === 'string' ? topic : 'topics'
    const { client } = readCommon(top, name, 'sink')
    return { name, topic: typeof topic === 'string' ? () => topic : topic, client }
  })
}

type Common = Pick<ResolvedOptions, 'topic' | 'group' | 'confirmTimeoutMs' | 'client'>

function readCommon(top: Section, topic: string, group: string): Common {
  const brokers = top.required<readonly string[]>('brokers', BROKERS)
  const confirmTimeoutMs = top.duration('confirmTimeout', CONFIRM_TIMEOUT_MS, WAIT)
  const client = top.ifGiven<ClientOptions>('client', CLIENT)
  return {
    topic,
    group,
    confirmTimeoutMs,
    client: {
      clientId: `redrive-${group}`,
      requestTimeout: confirmTimeoutMs,
      ...client,
      bootstrapBrokers: BROKERS.isValid(brokers) ? [...brokers] : [],
    },
  }
}

export const readTopic = (top: Section): string => top.required('topic', TOPIC)
export const readGroup = (top: Section): string => top.required('group', GROUP)

const BROKERS: Check = {
  isValid: (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((broker) => typeof broker === 'string' && /^.+:\d+$/.test(broker)),
  expected: "a list such as ['localhost:9092']",
  variables: ['KAFKA_BROKERS'],
}

const isName = (value: unknown) => typeof value === 'string' && /^[\w.-]+$/.test(value)

const TOPIC: Check = {
  isValid: isName,
  expected: 'the name of a topic (letters, digits, dots, - or _)',
}

const GROUP: Check = {
  isValid: isName,
  expected:
    'the name of a group (letters, digits, dots, - or _, because it is a part of topic names)',
}

const TOPICS: Check = {
  isValid: (value) => Array.isArray(value) && value.length > 0 && value.every(isName),
  expected: "a list of topics such as ['orders.dlq']",
}

const TOPIC_OR_FUNCTION: Check = {
  isValid: (value) => isName(value) || typeof value === 'function',
  expected: 'the name of a topic (letters, digits, dots, - or _), or a function that returns it',
}

const CLIENT: Check = {
  isValid: isRecord,
  expected: 'an object with options of @platformatic/kafka',
}
