import type { BaseOptions } from '@platformatic/kafka'
import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { OutboundEvent } from '@redrive/runtime'
import { deadLetterTopic, replayedTopic } from './topology.ts'

export interface KafkaOptions {
  /** `host:port` of some brokers; they name the others. */
  readonly brokers: readonly string[]
  /** The topic to consume. It must exist: how many partitions it has is not ours to choose. */
  readonly topic: string
  /** The consumer group. Retries and dead letters belong to a topic and a group. */
  readonly group: string
  /** `'lane'`: records of one key one after the other, however often one fails. Default `'none'`. */
  readonly order?: 'none' | 'lane'
  /**
   * `'atLeastOnce'`: a crash between copy and commit leaves both. `'transactional'`: retry or dead
   * letter and the commit of its original are one transaction, which costs a few requests for each
   * batch of hand-offs. Default `'atLeastOnce'`.
   */
  readonly handOff?: 'atLeastOnce' | 'transactional'
  /** Where a group begins that has committed nothing yet. Default `'earliest'`: nothing is skipped. */
  readonly from?: 'earliest' | 'latest'
  /**
   * `'declare'` makes retry and dead-letter topics that are missing; `'verify'` only looks.
   * `topologyOf` says what must be there. Default `'declare'`.
   */
  readonly topology?: 'declare' | 'verify'
  /** How soon others take over from a consumer that is not heard of. Default '30s'. */
  readonly sessionTimeout?: Duration
  /** How long handlers may go on with a partition that goes to another consumer. Default '5s'. */
  readonly drainTimeout?: Duration
  /** How long a copy may stay unconfirmed before it counts as unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** TLS, SASL and whatever else the client library wants to know. */
  readonly client?: ClientOptions
}

export type ClientOptions = Partial<Omit<BaseOptions, 'bootstrapBrokers'>>

export interface KafkaSourceOptions extends Pick<KafkaOptions, 'brokers' | 'topic' | 'client'> {
  /** The group whose dead letters these are. */
  readonly group: string
  /** Topics to drain. Default: the dead-letter topic of `topic` and `group`. */
  readonly deadLetterTopics?: readonly string[]
  /** The group the control plane drains with. Default `redrive`. */
  readonly drainGroup?: string
  readonly confirmTimeout?: Duration
}

export interface KafkaSinkOptions extends Pick<KafkaOptions, 'brokers' | 'client'> {
  /** Where events are produced. It must exist. A function chooses one for each event. */
  readonly topic: string | ((event: OutboundEvent) => string)
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

/** 30 s: rides out a long pause of the runtime, and a dead consumer holds its partitions no longer. */
const SESSION_MS = 30_000
/** 1 s: below that a busy machine loses its partitions. */
const LEAST_SESSION_MS = 1_000
/** 5 s: most handlers end within it, and a deploy does not wait longer. */
const DRAIN_MS = 5_000
/** 10 s: far beyond any healthy answer, short enough that a silent broker is noticed by a person on call. */
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
  if (sessionMs < LEAST_SESSION_MS) {
    problems.push(`sessionTimeout: expected '1s' or more, got ${sessionTimeout}`)
  }
  const drainMs = duration('drainTimeout', drainTimeout, problems)
  refuse('kafka()', problems)
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
  refuse('kafkaSource()', problems)
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
  refuse('kafkaSink()', problems)
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
  if (!/^[\w.-]+$/.test(topic)) problems.push('topic: expected letters, digits, dots, - or _')
  if (!/^[\w.-]+$/.test(group)) {
    problems.push(
      'group: expected letters, digits, dots, - or _: it is part of the names of topics',
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

function refuse(what: string, problems: readonly string[]): void {
  if (problems.length === 0) return
  const message = `${what} cannot be set up:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}
