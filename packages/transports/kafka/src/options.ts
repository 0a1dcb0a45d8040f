import type { BaseOptions } from '@platformatic/kafka'
import { type Duration, parseDuration, RedriveError } from '@redrive/core'
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

export function resolveOptions(options: KafkaOptions): ResolvedOptions {
  const { order = 'none', handOff = 'atLeastOnce', from = 'earliest' } = options
  const { topology = 'declare', sessionTimeout = SESSION_MS, drainTimeout = DRAIN_MS } = options
  const problems: string[] = []
  const common = resolveCommon(options, problems)
  oneOf('order', order, ['none', 'lane'], problems)
  oneOf('handOff', handOff, ['atLeastOnce', 'transactional'], problems)
  oneOf('from', from, ['earliest', 'latest'], problems)
  oneOf('topology', topology, ['declare', 'verify'], problems)
  const sessionMs = duration('sessionTimeout', sessionTimeout, problems)
  if (sessionMs < MIN_SESSION_MS) {
    problems.push(`sessionTimeout: expected '1s' or more, got ${sessionTimeout}`)
  }
  const drainMs = duration('drainTimeout', drainTimeout, problems)
  throwIfInvalid('kafka()', problems)
  return {
    ...common,
    order,
    from,
    isTransactional: handOff === 'transactional',
    isDeclaring: topology === 'declare',
    sessionMs,
    drainMs: Math.min(drainMs, sessionMs / 2),
  }
}

export function resolveSourceOptions(options: KafkaSourceOptions): ResolvedSourceOptions {
  const { deadLetterTopics, drainGroup = 'redrive' } = options
  const problems: string[] = []
  const common = resolveCommon(options, problems)
  throwIfInvalid('kafkaSource()', problems)
  const { topic, group } = common
  return {
    ...common,
    deadLetterTopics: deadLetterTopics ?? [deadLetterTopic(topic, group)],
    confirmationTopic: replayedTopic(topic, group),
    drainGroup,
  }
}

export function resolveSinkOptions(options: KafkaSinkOptions): ResolvedSinkOptions {
  const { topic } = options
  const problems: string[] = []
  const name = typeof topic === 'string' ? topic : 'topics'
  const { client } = resolveCommon({ ...options, topic: name, group: 'sink' }, problems)
  throwIfInvalid('kafkaSink()', problems)
  return { name, topic: typeof topic === 'string' ? () => topic : topic, client }
}

type Common = Pick<ResolvedOptions, 'topic' | 'group' | 'confirmTimeoutMs' | 'client'>

function resolveCommon(
  options: Pick<KafkaOptions, 'brokers' | 'topic' | 'group' | 'confirmTimeout' | 'client'>,
  problems: string[],
): Common {
  const { brokers, topic, group, confirmTimeout = CONFIRM_TIMEOUT_MS, client } = options
  if (brokers.length === 0 || !brokers.every((broker) => /^.+:\d+$/.test(broker))) {
    problems.push("brokers: expected a list such as ['localhost:9092']")
  }
  if (!/^[\w.-]+$/.test(topic))
    problems.push(`topic: expected letters, digits, dots, - or _, got '${topic}'`)
  if (!/^[\w.-]+$/.test(group)) {
    problems.push(
      `group: expected letters, digits, dots, - or _, because it is a part of topic names, got '${group}'`,
    )
  }
  const confirmTimeoutMs = duration('confirmTimeout', confirmTimeout, problems)
  return {
    topic,
    group,
    confirmTimeoutMs,
    client: {
      clientId: `redrive-${group}`,
      requestTimeout: confirmTimeoutMs,
      ...client,
      bootstrapBrokers: [...brokers],
    },
  }
}

function oneOf(name: string, value: string, expected: readonly string[], problems: string[]): void {
  if (expected.includes(value)) return
  const list = expected.map((one) => `'${one}'`).join(' or ')
  problems.push(`${name}: expected ${list}, got '${value}'`)
}

function duration(name: string, value: Duration, problems: string[]): number {
  const ms = parseDuration(value)
  if (ms === undefined || ms <= 0) {
    problems.push(`${name}: expected a duration such as '10s', got ${value}`)
  }
  return ms ?? 0
}

function throwIfInvalid(what: string, problems: readonly string[]): void {
  if (problems.length === 0) return
  const message = `The options of ${what} are invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}
