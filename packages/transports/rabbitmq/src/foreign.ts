import { cycleFromReport, type FailureCycle, FIRST_CYCLE } from '@redrive/core'
import type {
  BrokerHeaderTable,
  MassTransitHeaderTable,
  NServiceBusHeaderTable,
} from './header-tables.ts'

/** The failure of a message as the headers of another library describe it. */
export interface ForeignDeath {
  /** The reason as the other library wrote it, with its name as prefix. */
  readonly reason: string
  /** The queue it was consumed from, if the headers contain it. */
  readonly origin: string | undefined
  readonly cycle: FailureCycle
}

type Headers = Readonly<Record<string, unknown>>
type Reader = (headers: Headers) => ForeignDeath | undefined
/** A header of another library, or a field of an entry of `x-death`. */
type Name =
  | keyof NServiceBusHeaderTable
  | keyof MassTransitHeaderTable
  | keyof BrokerHeaderTable
  | 'reason'
  | 'queue'
  | 'count'

/** Reads dead letters of NServiceBus, MassTransit and the broker's dead-letter exchanges. */
export function readForeignDeath(headers: Headers): ForeignDeath {
  // Frameworks first: their headers contain more, and the broker's headers may be present as well.
  for (const read of READERS) {
    const death = read(headers)
    if (death !== undefined) return death
  }
  return { reason: 'unknown', origin: undefined, cycle: FIRST_CYCLE }
}

const nServiceBus: Reader = (headers) => {
  const origin = text(headers, 'NServiceBus.FailedQ')
  if (origin === undefined) return undefined
  return {
    reason: 'nservicebus_failed',
    // `queue@machine` on transports with machine names.
    origin: origin.split('@')[0],
    cycle: cycleFromReport({
      type: text(headers, 'NServiceBus.ExceptionInfo.ExceptionType'),
      message: text(headers, 'NServiceBus.ExceptionInfo.Message'),
      stack: text(headers, 'NServiceBus.ExceptionInfo.StackTrace'),
      at: nServiceBusTime(text(headers, 'NServiceBus.TimeOfFailure')),
      attempts: 1 + count(headers, 'NServiceBus.Retries') + count(headers, 'NServiceBus.FLRetries'),
    }),
  }
}

const massTransit: Reader = (headers) => {
  const reason = text(headers, 'MT-Reason')
  const type = text(headers, 'MT-Fault-ExceptionType')
  if (reason === undefined && type === undefined) return undefined
  return {
    reason: `masstransit_${reason ?? 'fault'}`,
    origin: queueOfAddress(text(headers, 'MT-Fault-InputAddress')),
    cycle: cycleFromReport({
      type,
      message: text(headers, 'MT-Fault-Message'),
      stack: text(headers, 'MT-Fault-StackTrace'),
      at: timeOf(text(headers, 'MT-Fault-Timestamp')),
      attempts: 1 + count(headers, 'MT-Fault-RetryCount'),
    }),
  }
}

/** Reads `x-death`. The newest entry comes first; the oldest contains the original queue. */
const broker: Reader = (headers) => {
  const deaths = headers['x-death' satisfies Name]
  if (!Array.isArray(deaths) || deaths.length === 0) return undefined
  const first = deaths.at(-1) as Headers
  const reason = text(headers, 'x-first-death-reason') ?? text(first, 'reason') ?? 'unknown'
  const rejections = (deaths as readonly Headers[])
    .filter(({ reason: why }) => why === 'rejected' || why === 'delivery_limit')
    .reduce((sum, death) => sum + count(death, 'count'), 0)
  return {
    reason: `broker_${reason}`,
    origin: text(headers, 'x-first-death-queue') ?? text(first, 'queue'),
    cycle: cycleFromReport({
      type: undefined,
      message: `the broker dead-lettered it: ${reason}`,
      stack: undefined,
      at: brokerTime(first['time']),
      attempts: rejections,
    }),
  }
}

const READERS: readonly Reader[] = [nServiceBus, massTransit, broker]

function text(headers: Headers, name: Name): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}

function count(headers: Headers, name: Name): number {
  const value = Number(headers[name] ?? 0)
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}

function timeOf(value: string | undefined): number | undefined {
  const time = value === undefined ? Number.NaN : Date.parse(value)
  return Number.isNaN(time) ? undefined : time
}

/** Parses `2026-11-14 23:44:05:123456 Z`: a colon before the fraction, and a space before the zone. */
function nServiceBusTime(value: string | undefined): number | undefined {
  const parts = value?.match(/^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d):(\d{3})\d* Z$/)
  return parts ? timeOf(`${parts[1]}T${parts[2]}.${parts[3]}Z`) : timeOf(value)
}

/** Reads a timestamp in seconds. The client library wraps it in an object to keep its AMQP type. */
function brokerTime(value: unknown): number | undefined {
  const seconds = (value as { readonly value?: unknown } | undefined)?.value
  return typeof seconds === 'number' ? seconds * 1_000 : undefined
}

/** Returns the queue of an address such as `rabbitmq://host/vhost/queue?durable=true` or `loopback://localhost/queue`. */
function queueOfAddress(address: string | undefined): string | undefined {
  const name = address?.split('?')[0]?.split('/').at(-1)
  return name ? decodeURIComponent(name) : undefined
}
