import { cycleFromReport, type FailureCycle, FIRST_CYCLE } from '@redrive/core'
import { reportOfErrorHeaders } from '@redrive/core/internal'
import type { Header, KafkaRecord } from './delivery.ts'
import type { ConnectHeaderTable, SpringHeaderTable } from './header-tables.ts'

/** The failure of a record as the headers of another library describe it. */
export interface ForeignDeath {
  /** The reason as the other library wrote it, with its name as prefix. */
  readonly reason: string
  /** The topic it was consumed from, if the headers contain it. */
  readonly origin: string | undefined
  readonly partition: number | undefined
  readonly cycle: FailureCycle
}

type Reader = (headers: ReadonlyMap<string, Buffer>) => ForeignDeath | undefined

/** Reads dead letters of Spring Kafka, of Kafka Connect, and with error headers. */
export function readForeignDeath({ headers, timestamp }: KafkaRecord): ForeignDeath {
  const byName = new Map(
    headers.map(([name, value]: Header) => [name.toString(), value ?? NO_BYTES]),
  )
  for (const read of READERS) {
    const death = read(byName)
    if (death === undefined) continue
    // Neither library stores the time of the failure; the dead letter was produced right after it.
    const history = death.cycle.history.map((record) => ({ ...record, at: timestamp }))
    return { ...death, cycle: { ...death.cycle, firstFailedAt: timestamp, history } }
  }
  return { reason: 'unknown', origin: undefined, partition: undefined, cycle: FIRST_CYCLE }
}

const NO_BYTES = Buffer.alloc(0)

const spring: Reader = (headers) => {
  const origin = text(headers, 'kafka_dlt-original-topic')
  if (origin === undefined) return undefined
  // The exception of the listener wraps the original one.
  const type =
    text(headers, 'kafka_dlt-exception-cause-fqcn') ?? text(headers, 'kafka_dlt-exception-fqcn')
  return {
    reason: 'spring_kafka_failed',
    origin,
    partition: int32(bytes(headers, 'kafka_dlt-original-partition')),
    cycle: cycleFromReport({
      type,
      message: text(headers, 'kafka_dlt-exception-message'),
      stack: text(headers, 'kafka_dlt-exception-stacktrace'),
      at: undefined,
      attempts: int32(bytes(headers, 'retry_topic-attempts')) ?? 1,
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
    cycle: cycleFromReport({
      type,
      message: text(headers, '__connect.errors.exception.message'),
      stack: text(headers, '__connect.errors.exception.stacktrace'),
      at: undefined,
      attempts: 1,
    }),
  }
}

/** Reads headers such as `x-error`, which many services write. */
const errorHeaders: Reader = (headers) => {
  const report = reportOfErrorHeaders((name) => headers.get(name)?.toString())
  if (report === undefined) return undefined
  const cycle = cycleFromReport(report)
  return { reason: 'error_header', origin: undefined, partition: undefined, cycle }
}

const READERS: readonly Reader[] = [spring, connect, errorHeaders]

type Name = keyof SpringHeaderTable | keyof ConnectHeaderTable

const bytes = (headers: ReadonlyMap<string, Buffer>, name: Name) => headers.get(name)
const text = (headers: ReadonlyMap<string, Buffer>, name: Name) => bytes(headers, name)?.toString()

/** Reads a number as Java writes it: four bytes, highest first. */
const int32 = (value: Buffer | undefined) => (value?.length === 4 ? value.readInt32BE() : undefined)

const wholeNumber = (value: string | undefined) =>
  value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined
