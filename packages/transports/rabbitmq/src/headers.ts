import { randomUUID } from 'node:crypto'
import { deflateSync, inflateSync } from 'node:zlib'
import {
  type Delivery,
  decodeHeaders,
  encodeHeaders,
  type FailureCycle,
  FIRST_CYCLE,
} from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { ConsumeMessage, Options } from 'amqplib'

/** A delivery with the message as the client library gave it, which settles it. */
export interface RabbitMqDelivery extends Delivery {
  readonly raw: ConsumeMessage
}

type Headers = Readonly<Record<string, unknown>>

/** What AMQP says about a message. */
interface Properties {
  readonly headers?: Headers
  readonly messageId?: string
  readonly type?: string
  readonly contentType?: string
  readonly contentEncoding?: string
  readonly correlationId?: string
  readonly replyTo?: string
  readonly appId?: string
  readonly priority?: number
  readonly timestamp?: number
  readonly expiration?: string
  readonly userId?: string
}

/** The client library's types say `any` for each. */
const propertiesOf = ({ properties }: ConsumeMessage) => properties as unknown as Properties

const NO_HEADERS: Headers = Object.freeze({})
const NO_PROBLEMS: readonly string[] = Object.freeze([])

/** Where the producer sent it: a copy arrives by another way. */
const EXCHANGE = 'redrive-exchange'
const ROUTING_KEY = 'redrive-routing-key'
/** Times this message was in hand without a word before we returned it by a copy, which starts at 0. */
const COUNT_BEFORE = 'redrive-delivery-count'
/** What the producer wrote that the broker would act on again; kept as JSON. */
const ASIDE = 'redrive-aside'

/** Written by the broker, not by the producer. On a copy they would be wrong, or make it drop the copy. */
const OF_BROKER = /^x-(?:death|(?:first|last)-death-\w+|delivery-count|acquired-count)$/

export function toDelivery(source: string, raw: ConsumeMessage): RabbitMqDelivery {
  const { headers, messageId, type, contentType } = propertiesOf(raw)
  // A producer that names its messages lets the inbox recognise a duplicate; without a name there is none.
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
    id,
    source,
    lane: undefined,
    key: decoded.key ?? id,
    type,
    bytes: raw.content,
    contentType,
    headers: { ...ofProducer(decoded.foreign), ...asideIn(headers).headers },
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

function ofProducer(foreign: Headers): Headers {
  return Object.fromEntries(Object.entries(foreign).filter(([name]) => !OF_BROKER.test(name)))
}

/** Whether its id is the same whenever it is drained: else the only trace of having been in hand is the broker's. */
export function namingOf(raw: ConsumeMessage): DrainedDeadLetter['naming'] {
  const { headers = NO_HEADERS, messageId } = propertiesOf(raw)
  if (messageId || decodeHeaders(headers).id !== undefined) return 'named'
  return raw.fields.redelivered ? 'unnamed_again' : 'unnamed'
}

/** Hand-outs without a word: those the broker counted, and those of the copy before this one. */
export function unheardIn(raw: ConsumeMessage): number {
  const { headers = NO_HEADERS } = propertiesOf(raw)
  return wholeNumber(headers['x-delivery-count']) + wholeNumber(headers[COUNT_BEFORE])
}

function wholeNumber(value: unknown): number {
  const number = typeof value === 'string' && /^\d{1,6}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** Where a message was first sent to. */
interface Address {
  readonly exchange: string
  readonly routingKey: string
}

function addressOf(raw: ConsumeMessage): Address {
  const { headers = NO_HEADERS } = propertiesOf(raw)
  const { [EXCHANGE]: exchange, [ROUTING_KEY]: routingKey } = headers
  if (typeof exchange === 'string' && typeof routingKey === 'string') {
    return { exchange, routingKey }
  }
  // A copy that does not say: its original was sent straight to the queue.
  const { source } = decodeHeaders(headers)
  if (source !== undefined) return { exchange: '', routingKey: source }
  return { exchange: raw.fields.exchange, routingKey: raw.fields.routingKey }
}

// ---- copies -----------------------------------------------------------------------------------

/** What a copy says beyond the original. */
export interface CopyOptions {
  readonly cycle: FailureCycle
  readonly reason?: string | undefined
  readonly stack?: string | undefined
  /** For a copy that only returns the message. */
  readonly unheard?: number
  /** How long the broker keeps it. */
  readonly expiration?: string | undefined
  readonly budgetBytes: number
  /** All of the producer's headers are put aside: the client library cannot encode them as they are. */
  readonly headersAside?: boolean
}

export interface Copy {
  readonly content: Buffer
  readonly properties: Options.Publish
  /** Attempts left out of the history to fit the budget. */
  readonly truncated: number
}

/** Properties that travel as they came; `userId`, `expiration` and the delivery mode do not. */
const KEPT = [
  'messageId',
  'type',
  'contentType',
  'contentEncoding',
  'correlationId',
  'replyTo',
  'appId',
  'priority',
  'timestamp',
] as const

/** The same message with a later chapter of its history. Bytes and the producer's headers stay as they are. */
export function copyOf(delivery: RabbitMqDelivery, options: CopyOptions): Copy {
  const { id, key, source, replayId, replaces, raw } = delivery
  const { cycle, reason, stack, budgetBytes, unheard, expiration } = options
  const state = { id, key, source, replayId, replaces, cycle, reason, stack }
  const encoded = encodeHeaders(state, budgetBytes)
  const { CC, BCC, ...others } = delivery.headers
  const { headersAside = false } = options
  const headers = headersAside ? NO_HEADERS : others
  const aside = asideOf(raw, headersAside ? delivery.headers : { CC, BCC })
  return {
    content: raw.content,
    truncated: encoded.truncated,
    properties: {
      ...kept(propertiesOf(raw)),
      ...(expiration === undefined ? {} : { expiration }),
      headers: {
        ...headers,
        ...encoded.headers,
        ...addressHeaders(addressOf(raw), source),
        ...(aside === undefined ? {} : { [ASIDE]: aside }),
        ...(unheard === undefined ? {} : { [COUNT_BEFORE]: String(unheard) }),
      },
    },
  }
}

function kept(properties: Properties): Options.Publish {
  const found: Record<string, unknown> = {}
  for (const name of KEPT) if (properties[name] !== undefined) found[name] = properties[name]
  return found
}

/** Nothing for a message that was sent straight to its queue, as most are. */
const addressHeaders = ({ exchange, routingKey }: Address, source: string): Headers =>
  exchange === '' && routingKey === source
    ? NO_HEADERS
    : { [EXCHANGE]: exchange, [ROUTING_KEY]: routingKey }

interface Aside {
  /** `CC` and `BCC`: copies go where we send them, nowhere else. Or all, when they cannot be encoded. */
  readonly headers: Headers
  /** On a copy it would end the wait early, or the dead letter. */
  readonly expiration?: string
  /** The broker refuses a user other than ours. */
  readonly userId?: string
}

function asideOf(raw: ConsumeMessage, own: Headers): string | undefined {
  const properties = propertiesOf(raw)
  const before = asideIn(properties.headers ?? NO_HEADERS)
  const headers = Object.entries(own).filter(([, value]) => value !== undefined)
  const expiration = before.expiration ?? properties.expiration
  const userId = before.userId ?? properties.userId
  if (headers.length === 0 && expiration === undefined && userId === undefined) return undefined
  return packed(JSON.stringify({ headers: Object.fromEntries(headers), expiration, userId }))
}

const DEFLATED = 'deflated:'
/** 4 KiB: what is longer may be too long for the room that is left. */
const PACK_FROM = 4_096
/** 1 MiB: far more than headers can be; a text that unpacks to more is not ours. */
const UNPACKED_MAX = 1_048_576

const packed = (text: string) =>
  text.length < PACK_FROM ? text : `${DEFLATED}${deflateSync(text).toString('base64')}`

function unpacked(text: string): string {
  if (!text.startsWith(DEFLATED)) return text
  const bytes = Buffer.from(text.slice(DEFLATED.length), 'base64')
  return inflateSync(bytes, { maxOutputLength: UNPACKED_MAX }).toString()
}

const NOTHING_ASIDE: Aside = Object.freeze({ headers: NO_HEADERS })

/** Ours, but it travelled: whatever cannot be read counts as absent. */
function asideIn(headers: Headers): Aside {
  const text = headers[ASIDE]
  if (typeof text !== 'string') return NOTHING_ASIDE
  try {
    return { ...NOTHING_ASIDE, ...(JSON.parse(unpacked(text)) as Aside) }
  } catch {
    return NOTHING_ASIDE
  }
}

// ---- replays ----------------------------------------------------------------------------------

/** What only we can read of a drained message, as text that anyone can keep. */
export function envelopeOf(raw: ConsumeMessage): Readonly<Record<string, string>> {
  const { type: _, contentType: __, ...properties } = kept(propertiesOf(raw))
  const texts = Object.entries(properties).map(([name, value]) => [name, String(value)] as const)
  return { ...Object.fromEntries(texts), ...addressOf(raw) }
}

/** Properties that are numbers on the wire. */
const NUMBERS: readonly string[] = ['priority', 'timestamp']

/** The message as it goes back: the next cycle, with nothing of the last one but its number. */
export function replayOf(
  { delivery, envelope }: DrainedDeadLetter,
  replayId: string,
): Omit<Copy, 'truncated'> {
  const { id, key, source, replaces, bytes, contentType, type } = delivery
  const cycle = { ...FIRST_CYCLE, number: delivery.cycle.number + 1 }
  const state = { id, key, source, replayId, replaces, cycle, reason: undefined }
  const encoded = encodeHeaders(state)
  const { exchange = '', routingKey = source, ...texts } = envelope
  const properties = Object.entries(texts).map(([name, text]) =>
    NUMBERS.includes(name) ? [name, Number(text)] : [name, text],
  )
  // It goes to one place, as a retry does.
  const { CC: _, BCC: __, ...headers } = delivery.headers
  return {
    content: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    properties: {
      ...kept({
        ...(Object.fromEntries(properties) as Properties),
        ...(contentType === undefined ? {} : { contentType }),
        ...(type === undefined ? {} : { type }),
      }),
      headers: {
        ...headers,
        ...encoded.headers,
        ...addressHeaders({ exchange, routingKey }, source),
      },
    },
  }
}
