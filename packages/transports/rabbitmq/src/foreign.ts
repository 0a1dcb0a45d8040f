import { cycleFromReport, type FailureCycle, FIRST_CYCLE } from '@redrive/core'
import { reportOfErrorHeaders } from '@redrive/core/internal'
import type { Address } from './delivery.ts'
import type {
  MassTransitHeaderTable,
  NServiceBusHeaderTable,
  RascalHeaderTable,
  SpringAmqpHeaderTable,
} from './header-tables.ts'
import {
  type BrokerDeath,
  brokerDeathsIn,
  fatalDeath,
  firstDeath,
  isByConsumer,
  type KnownQueues,
} from './message/broker-deaths.ts'
import { type Headers, tableAt } from './message/properties.ts'

/** The failure of a message as the headers of another library describe it. */
export interface ForeignDeath {
  /** The reason as the other library wrote it, with its name as prefix. */
  readonly reason: string
  /** The queue it was consumed from, if the headers contain it. */
  readonly origin: string | undefined
  /** The exchange and routing key of the producer, if the headers contain them. */
  readonly address?: Address | undefined
  readonly cycle: FailureCycle
}

type Reader = (headers: Headers, queues: KnownQueues) => ForeignDeath | undefined
/** A header of another library. */
type Name =
  | keyof NServiceBusHeaderTable
  | keyof MassTransitHeaderTable
  | keyof SpringAmqpHeaderTable
  | keyof RascalHeaderTable

/** Reads dead letters of other libraries and of the broker's dead-letter exchanges. */
export function readForeignDeath(headers: Headers, queues: KnownQueues): ForeignDeath {
  const broker = readBrokerDeath(headers, queues)
  // Libraries first: their headers contain more. The broker knows the queue, if it was involved.
  for (const read of READERS) {
    const death = read(headers, queues)
    if (death === undefined) continue
    const { origin = broker?.origin, address = broker?.address } = death
    return { ...death, origin, address }
  }
  return broker ?? { reason: 'unknown', origin: undefined, cycle: FIRST_CYCLE }
}

/** The broker returned the message too often without an acknowledgement: its consumers crashed. */
const CRASHES = 'broker_delivery_limit'

/**
 * Returns the cycle of a message with a history of Redrive that others dead-lettered. Crashes are its last failure, with
 * their time and their group. Otherwise the last failure of the handler explains more than the broker does.
 */
export function withForeignDeath(own: FailureCycle, { reason, cycle }: ForeignDeath): FailureCycle {
  const last = own.history.at(-1)
  if (last === undefined) return { ...cycle, number: own.number }
  if (reason !== CRASHES) return own
  const crashes = cycle.history.map((one) => ({
    ...one,
    number: last.number + 1,
    // The broker stores times in seconds.
    at: Math.max(last.at, one.at),
  }))
  const [attempts, runs] = [own.attempts + 1, own.runs + 1]
  return { ...own, attempts, runs, history: [...own.history, ...crashes] }
}

/** Reads the broker's own header, `x-death`. */
export function readBrokerDeath(headers: Headers, queues: KnownQueues): ForeignDeath | undefined {
  const deaths = brokerDeathsIn(headers)
  const fatal = fatalDeath(deaths, queues)
  if (fatal === undefined) return undefined
  const first = firstDeath(headers, deaths)
  const rejections = deaths.filter(isByConsumer).reduce((sum, { count }) => sum + count, 0)
  return {
    reason: `broker_${fatal.reason}`,
    // A dead-letter queue is not where it failed.
    origin: queues.deadLetters.includes(fatal.queue) ? undefined : fatal.queue,
    address: first && addressOf(first),
    cycle: cycleFromReport({
      type: undefined,
      message: `the broker dead-lettered it: ${fatal.reason}`,
      stack: undefined,
      at: fatal.at,
      attempts: rejections,
    }),
  }
}

function addressOf({ exchange, routingKeys }: BrokerDeath): Address {
  const [routingKey = '', ...copies] = routingKeys
  return copies.length === 0 ? { exchange, routingKey } : { exchange, routingKey, copies }
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

/** Reads dead letters that Spring AMQP publishes with a `RepublishMessageRecoverer`. It does not write the queue. */
const springAmqp: Reader = (headers) => {
  const message = text(headers, 'x-exception-message')
  const stack = text(headers, 'x-exception-stacktrace')
  if (message === undefined && stack === undefined) return undefined
  const exchange = text(headers, 'x-original-exchange')
  const routingKey = text(headers, 'x-original-routingKey')
  return {
    reason: 'spring_amqp_failed',
    // Without an exchange, the routing key is the name of the queue.
    origin: exchange === '' && routingKey ? routingKey : undefined,
    address: exchange === undefined ? undefined : { exchange, routingKey: routingKey ?? '' },
    cycle: cycleFromReport({
      type: stack?.match(/^[\w.$]+/)?.[0],
      message,
      stack,
      at: undefined,
      attempts: 1,
    }),
  }
}

/** Reads dead letters that rascal forwards or publishes again. All its headers are in one table. */
const rascal: Reader = (headers) => {
  const table = tableAt(headers['rascal' satisfies Name])
  const { message } = tableAt(table['error'])
  if (typeof message !== 'string') return undefined
  const { originalQueue, originalExchange: exchange, originalRoutingKey: routingKey } = table
  const origin = typeof originalQueue === 'string' ? originalQueue : undefined
  const recovery = tableAt(tableAt(table['recovery'])[origin ?? ''])
  const isAddressed = typeof exchange === 'string' && typeof routingKey === 'string'
  return {
    reason: 'rascal_failed',
    origin,
    address: isAddressed ? { exchange, routingKey } : undefined,
    cycle: cycleFromReport({
      type: undefined,
      message,
      stack: undefined,
      at: undefined,
      attempts: 1 + wholeNumber(recovery['republished']),
    }),
  }
}

/** Reads headers such as `x-error`, which many services write. */
const errorHeaders: Reader = (headers) => {
  const report = reportOfErrorHeaders((name) => headers[name])
  if (report === undefined) return undefined
  return { reason: 'error_header', origin: undefined, cycle: cycleFromReport(report) }
}

const READERS: readonly Reader[] = [nServiceBus, massTransit, springAmqp, rascal, errorHeaders]

function text(headers: Headers, name: Name): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}

const count = (headers: Headers, name: Name): number => wholeNumber(headers[name])

function wholeNumber(value: unknown): number {
  const isNumber = typeof value === 'number' || typeof value === 'string'
  const number = isNumber ? Number(value) : 0
  return Number.isSafeInteger(number) && number > 0 ? number : 0
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

/** Returns the queue of an address such as `rabbitmq://host/vhost/queue?durable=true` or `loopback://localhost/queue`. */
function queueOfAddress(address: string | undefined): string | undefined {
  const name = address?.split('?')[0]?.split('/').at(-1)
  if (!name) return undefined
  try {
    return decodeURIComponent(name)
  } catch {
    // A `%` that does not begin an escape sequence. Any program can write this header.
    return name
  }
}
