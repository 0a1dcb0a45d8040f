import type { BrokerHeaderTable } from '../header-tables.ts'
import type { Headers } from './properties.ts'

/** An entry of `x-death`: a queue that the broker dead-lettered the message from, for one reason. */
export interface BrokerDeath {
  readonly queue: string
  readonly reason: string
  /** How often it happened. */
  readonly count: number
  /** Time of the first occurrence, if the entry contains one. */
  readonly at: number | undefined
  /** The exchange and routing keys that the message had when it arrived in the queue. */
  readonly exchange: string
  readonly routingKeys: readonly string[]
}

/** Returns the deaths of a message, newest first. Any program can write this header, so unreadable entries are left out. */
export function brokerDeathsIn(headers: Headers): readonly BrokerDeath[] {
  const deaths = headers['x-death' satisfies keyof BrokerHeaderTable]
  return Array.isArray(deaths) ? (deaths as readonly unknown[]).flatMap(readDeath) : []
}

function readDeath(entry: unknown): readonly BrokerDeath[] {
  if (typeof entry !== 'object' || entry === null) return []
  const { queue, reason, count, time, exchange, 'routing-keys': keys } = entry as Headers
  if (typeof queue !== 'string' || queue === '' || typeof reason !== 'string') return []
  return [
    {
      queue,
      reason,
      count: Number.isSafeInteger(count) ? Math.max(0, count as number) : 0,
      at: timeOf(time),
      exchange: typeof exchange === 'string' ? exchange : '',
      routingKeys: Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [],
    },
  ]
}

/** Reads a timestamp in seconds. The client library wraps it in an object to keep its AMQP type. */
function timeOf(time: unknown): number | undefined {
  const seconds = (time as { readonly value?: unknown } | null | undefined)?.value
  return typeof seconds === 'number' ? seconds * 1_000 : undefined
}

/** The reasons of a death that a consumer caused. */
const BY_CONSUMER: readonly string[] = ['rejected', 'delivery_limit']
export const isByConsumer = ({ reason }: BrokerDeath): boolean => BY_CONSUMER.includes(reason)

/** The queues that a control plane knows. */
export interface KnownQueues {
  /** The queue of the consumer. */
  readonly source: string
  readonly deadLetters: readonly string[]
}

/**
 * Returns the death that made the message a dead letter. It is not always the first or the newest one: a message may
 * wait in delay queues before it fails, and expire in a dead-letter queue afterwards.
 */
export function fatalDeath(
  deaths: readonly BrokerDeath[],
  { source, deadLetters }: KnownQueues,
): BrokerDeath | undefined {
  const before = deaths.filter(({ queue }) => !deadLetters.includes(queue))
  return (
    before.find(isByConsumer) ??
    before.find(({ queue }) => queue === source) ??
    before[0] ??
    deaths[0]
  )
}

/** Returns the first death, whose exchange and routing keys are those of the producer. */
export function firstDeath(
  headers: Headers,
  deaths: readonly BrokerDeath[],
): BrokerDeath | undefined {
  const firstQueue = headers['x-first-death-queue' satisfies keyof BrokerHeaderTable]
  const firstReason = headers['x-first-death-reason' satisfies keyof BrokerHeaderTable]
  const isFirst = ({ queue, reason }: BrokerDeath) => queue === firstQueue && reason === firstReason
  return deaths.find(isFirst) ?? deaths.at(-1)
}
