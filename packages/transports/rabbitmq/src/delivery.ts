import { randomUUID } from 'node:crypto'
import {
  type Delivery,
  decodeHeaders,
  encodeHeaders,
  type FailureCycle,
  FIRST_CYCLE,
  nextCycle,
} from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { ConsumeMessage, Options } from 'amqplib'
import type { BrokerHeaderTable, RabbitMqHeaderTable } from './header-tables.ts'
import { type HeaderTypes, withTypes } from './message/header-types.ts'
import { asideHeader, asideIn } from './message/aside.ts'
import {
  copiedProperties,
  type Headers,
  NO_HEADERS,
  type Properties,
  propertiesOf,
} from './message/properties.ts'

/** A delivery with the message of the client library, which is needed to acknowledge it. */
export interface RabbitMqDelivery extends Delivery {
  readonly raw: ConsumeMessage
  /**
   * The AMQP types of numbers in the headers, which copies keep.
   *
   * @internal
   */
  readonly headerTypes?: HeaderTypes
}

const NO_PROBLEMS: readonly string[] = Object.freeze([])

const EXCHANGE = 'redrive-exchange' satisfies keyof RabbitMqHeaderTable
const ROUTING_KEY = 'redrive-routing-key' satisfies keyof RabbitMqHeaderTable
const COUNT_BEFORE = 'redrive-delivery-count' satisfies keyof RabbitMqHeaderTable
const BROKER_COUNT = 'x-delivery-count' satisfies keyof BrokerHeaderTable

/** Headers that the broker writes. On a copy they would be wrong, or make the broker drop the copy. */
const BROKER_HEADERS = /^x-(?:death|(?:first|last)-death-\w+|delivery-count|acquired-count)$/

export function toDelivery(
  source: string,
  raw: ConsumeMessage,
  headerTypes?: HeaderTypes,
): RabbitMqDelivery {
  const { headers, messageId, type, contentType } = propertiesOf(raw)
  // With a message id from the producer, the inbox recognises duplicates. A random id cannot do that.
  const ownId = messageId || randomUUID()
  if (headers === undefined || isEmpty(headers)) {
    return {
      raw,
      id: ownId,
      source,
      lane: undefined,
      key: ownId,
      type,
      bytes: raw.content,
      contentType,
      headers: NO_HEADERS,
      cycle: FIRST_CYCLE,
      deliveryCount: 1,
      replayId: undefined,
      headerProblems: NO_PROBLEMS,
    }
  }
  const decoded = decodeHeaders(headers)
  const id = decoded.id ?? ownId
  return {
    raw,
    ...(headerTypes === undefined ? {} : { headerTypes }),
    id,
    source,
    lane: undefined,
    key: decoded.key ?? id,
    type,
    bytes: raw.content,
    contentType,
    headers: { ...producerHeaders(decoded.foreign), ...asideIn(headers).headers },
    cycle: decoded.cycle,
    deliveryCount: 1 + unheardIn(raw),
    replayId: decoded.replayId,
    ...(decoded.replaces === undefined ? {} : { replaces: decoded.replaces }),
    headerProblems: decoded.problems,
  }
}

function isEmpty(headers: Headers): boolean {
  for (const _ in headers) return false
  return true
}

function producerHeaders(foreign: Headers): Headers {
  return Object.fromEntries(Object.entries(foreign).filter(([name]) => !BROKER_HEADERS.test(name)))
}

/**
 * Returns whether the message has the same id each time it is drained. Without a stable id, only the
 * broker's `redelivered` flag shows that it was drained before.
 */
export function identityOf(raw: ConsumeMessage): DrainedDeadLetter['identity'] {
  const { headers = NO_HEADERS, messageId } = propertiesOf(raw)
  if (messageId || decodeHeaders(headers).id !== undefined) return 'stable'
  return raw.fields.redelivered ? 'generated_redelivered' : 'generated'
}

/** Returns the number of unfinished deliveries: the broker's count plus those of the copy before this one. */
export function unheardIn(raw: ConsumeMessage): number {
  const { headers = NO_HEADERS } = propertiesOf(raw)
  return wholeNumber(headers[BROKER_COUNT]) + wholeNumber(headers[COUNT_BEFORE])
}

function wholeNumber(value: unknown): number {
  const number = typeof value === 'string' && /^\d{1,6}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** The exchange and routing key a message was first published to. */
export interface Address {
  readonly exchange: string
  readonly routingKey: string
  /** Further routing keys, which the producer wrote into the header `CC`. */
  readonly copies?: readonly string[]
}

/** Returns the original address of a copy, or undefined for a message that is not a copy of Redrive. */
export function copiedAddressOf(raw: ConsumeMessage): Address | undefined {
  const { headers = NO_HEADERS } = propertiesOf(raw)
  const { [EXCHANGE]: exchange, [ROUTING_KEY]: routingKey } = headers
  if (typeof exchange === 'string' && typeof routingKey === 'string') {
    return { exchange, routingKey }
  }
  // A copy without these headers: its original was published directly to the queue.
  const { source } = decodeHeaders(headers)
  return source === undefined ? undefined : { exchange: '', routingKey: source }
}

function addressOf(raw: ConsumeMessage): Address {
  const { exchange, routingKey } = raw.fields
  return copiedAddressOf(raw) ?? { exchange, routingKey }
}

// ---- copies -----------------------------------------------------------------------------------

/** The data that a copy adds to the original. */
export interface CopyOptions {
  readonly cycle: FailureCycle
  readonly reason?: string | undefined
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  /** Unfinished deliveries so far, for a copy that only returns the message. */
  readonly unheard?: number
  /** Time to live of the copy, in milliseconds. */
  readonly expiration?: string | undefined
  readonly budgetBytes: number
  /** Whether all headers of the producer are stored as JSON, because the client library cannot encode them. */
  readonly headersAside?: boolean
}

export interface Copy {
  readonly content: Buffer
  readonly properties: Options.Publish
  /** Number of failures removed from the history to fit the header budget. */
  readonly truncated: number
}

/** Returns a copy of the message with the updated failure history. Bytes and producer headers stay unchanged. */
export function copyOf(delivery: RabbitMqDelivery, options: CopyOptions): Copy {
  const { id, key, source, replayId, replaces, raw } = delivery
  const { cycle, reason, handler, stack, budgetBytes, unheard, expiration } = options
  const state = { id, key, source, replayId, replaces, cycle, reason, handler, stack }
  const encoded = encodeHeaders(state, budgetBytes)
  const { CC, BCC, ...others } = delivery.headers
  const { headersAside = false } = options
  const headers = headersAside ? NO_HEADERS : withTypes(others, delivery.headerTypes)
  return {
    content: raw.content,
    truncated: encoded.truncated,
    properties: {
      ...copiedProperties(propertiesOf(raw)),
      ...(expiration === undefined ? {} : { expiration }),
      headers: {
        ...headers,
        ...encoded.headers,
        ...addressHeaders(addressOf(raw), source),
        ...asideHeader(raw, headersAside ? delivery.headers : { CC, BCC }),
        ...(unheard === undefined ? {} : { [COUNT_BEFORE]: String(unheard) }),
      },
    },
  }
}

/** Returns the headers for the original address; none when the message was published directly to its queue. */
const addressHeaders = ({ exchange, routingKey }: Address, source: string): Headers =>
  exchange === '' && routingKey === source
    ? NO_HEADERS
    : { [EXCHANGE]: exchange, [ROUTING_KEY]: routingKey }

// ---- replays ----------------------------------------------------------------------------------

/** Returns the AMQP properties, types of headers and address as text, for storage with the dead letter. */
export function envelopeOf(
  { raw, headerTypes }: Pick<RabbitMqDelivery, 'raw'> & { readonly headerTypes?: HeaderTypes },
  { exchange, routingKey, copies }: Address,
): Readonly<Record<string, string>> {
  const { type: _, contentType: __, ...properties } = copiedProperties(propertiesOf(raw))
  const texts = Object.entries(properties).map(([name, value]) => [name, String(value)] as const)
  return {
    ...Object.fromEntries(texts),
    exchange,
    routingKey,
    ...(copies === undefined ? {} : { copies: JSON.stringify(copies) }),
    ...(headerTypes === undefined ? {} : { headerTypes: JSON.stringify(headerTypes) }),
  }
}

/** Returns the AMQP properties that the envelope and the delivery contain. */
export function storedProperties(
  texts: Readonly<Record<string, string>>,
  { contentType, type }: Pick<Delivery, 'contentType' | 'type'>,
): Options.Publish {
  const properties = Object.entries(texts).map(([name, text]) =>
    NUMBERS.includes(name) ? [name, Number(text)] : [name, text],
  )
  return copiedProperties({
    ...(Object.fromEntries(properties) as Properties),
    ...(contentType === undefined ? {} : { contentType }),
    ...(type === undefined ? {} : { type }),
  })
}

/** Properties that are numbers in AMQP. */
const NUMBERS: readonly string[] = ['priority', 'timestamp']

/** Returns the address of the producer, with the routing keys of the header `CC`. */
export function producerAddressOf({ envelope, origin, delivery }: DrainedDeadLetter): Address {
  const { exchange = '', routingKey = origin, copies } = envelope
  // The default exchange reaches every queue, and any program can write the headers: only the origin is checked.
  if (exchange === '') return { exchange, routingKey: origin }
  const { CC } = delivery.headers
  const known = copies === undefined ? CC : (JSON.parse(copies) as unknown)
  return Array.isArray(known) && known.length > 0
    ? { exchange, routingKey, copies: known as readonly string[] }
    : { exchange, routingKey }
}

/** Returns the message to publish for a replay: the next cycle, which keeps only the number of the last one. */
export function replayOf(
  { delivery, envelope }: DrainedDeadLetter,
  replayId: string,
  copies?: readonly string[],
): Omit<Copy, 'truncated'> {
  const { id, key, source, replaces, bytes, contentType, type } = delivery
  const cycle = nextCycle(delivery.cycle)
  const state = { id, key, source, replayId, replaces, cycle, reason: undefined }
  const encoded = encodeHeaders(state)
  const { exchange = '', routingKey = source, headerTypes, ...texts } = envelope
  // A replay is routed to one destination, like a retry, unless `copies` contains further routing keys.
  const { CC: _, BCC: __, ...headers } = delivery.headers
  const types = headerTypes === undefined ? undefined : (JSON.parse(headerTypes) as HeaderTypes)
  return {
    content: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    properties: {
      ...storedProperties(texts, { contentType, type }),
      headers: {
        ...withTypes(headers, types),
        ...encoded.headers,
        ...addressHeaders({ exchange, routingKey }, source),
        ...(copies === undefined ? {} : { CC: copies }),
      },
    },
  }
}
