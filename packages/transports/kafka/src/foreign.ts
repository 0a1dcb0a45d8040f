import { cycleOfTold, type FailureCycle, FIRST_CYCLE } from '@redrive/core'
import type { Header, KafkaRecord } from './headers.ts'

/** What someone else's headers say about how a record died. */
export interface ForeignDeath {
  /** In the words of who wrote it, prefixed with who that was. */
  readonly reason: string
  /** Where it was consumed from, as far as the headers say so. */
  readonly origin: string | undefined
  readonly partition: number | undefined
  readonly cycle: FailureCycle
}

type Reader = (headers: ReadonlyMap<string, Buffer>) => ForeignDeath | undefined

/** Reads dead letters of Spring Kafka and of Kafka Connect. */
export function readForeignDeath({ headers, timestamp }: KafkaRecord): ForeignDeath {
  const byName = new Map(
    headers.map(([name, value]: Header) => [name.toString(), value ?? NO_BYTES]),
  )
  for (const read of READERS) {
    const death = read(byName)
    if (death === undefined) continue
    // Neither says when it failed; the dead letter was produced right afterwards.
    const history = death.cycle.history.map((record) => ({ ...record, at: timestamp }))
    return { ...death, cycle: { ...death.cycle, firstFailedAt: timestamp, history } }
  }
  return { reason: 'unknown', origin: undefined, partition: undefined, cycle: FIRST_CYCLE }
}

const NO_BYTES = Buffer.alloc(0)

const spring: Reader = (headers) => {
  const origin = text(headers, 'kafka_dlt-original-topic')
  if (origin === undefined) return undefined
  // The listener's own exception wraps the one that matters.
  const type =
    text(headers, 'kafka_dlt-exception-cause-fqcn') ?? text(headers, 'kafka_dlt-exception-fqcn')
  return {
    reason: 'spring_kafka_failed',
    origin,
    partition: int32(headers.get('kafka_dlt-original-partition')),
    cycle: cycleOfTold({
      type,
      message: text(headers, 'kafka_dlt-exception-message'),
      stack: text(headers, 'kafka_dlt-exception-stacktrace'),
      at: undefined,
      attempts: int32(headers.get('retry_topic-attempts')) ?? 1,
    }),
  }
}

const connect: Reader = (headers) => {
  const origin = text(headers, '__connect.errors.topic')
  const type = text(headers, '__connect.errors.exception.class.name')
  if (origin === undefined && type === undefined) return undefined
  const stage = text(headers, '__connect.errors.stage')?.toLowerCase()
  return {
    reason: `kafka_connect_${stage ?? 'failed'}`,
    origin,
    partition: wholeNumber(text(headers, '__connect.errors.partition')),
    cycle: cycleOfTold({
      type,
      message: text(headers, '__connect.errors.exception.message'),
      stack: text(headers, '__connect.errors.exception.stacktrace'),
      at: undefined,
      attempts: 1,
    }),
  }
}

const READERS: readonly Reader[] = [spring, connect]

const text = (headers: ReadonlyMap<string, Buffer>, name: string) => headers.get(name)?.toString()

/** Numbers as Java writes them: four bytes, highest first. */
const int32 = (bytes: Buffer | undefined) => (bytes?.length === 4 ? bytes.readInt32BE() : undefined)

const wholeNumber = (value: string | undefined) =>
  value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined
