import {
  type Delivery,
  decodeHeaders,
  encodeHeaders,
  type FailureCycle,
  nextCycle,
} from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Message } from '@aws-sdk/client-sqs'
import {
  type Attribute,
  type Attributes,
  type Headers,
  readAttributes,
  writeAttributes,
} from './attributes.ts'
import { HEADER_BUDGET_BYTES } from './capabilities.ts'
import type { SqsEventHeaderTable, SqsHeaderTable } from './header-tables.ts'
import { unwrapSns } from './sns.ts'
import { toBytes, toText } from './text-body.ts'

/** A message as SQS delivered it, with the handle that deletes it. */
export interface ReceivedMessage {
  readonly messageId: string
  readonly receiptHandle: string
  readonly body: string
  readonly producers: readonly Attribute[]
  readonly own: Readonly<Record<string, unknown>>
  /** How often SQS delivered it, this time included. */
  readonly receives: number
  /** The message group. Undefined: a message of a standard queue without one. */
  readonly group: string | undefined
  readonly system: Readonly<Record<string, string>>
}

/** A delivery with its message. */
export interface SqsDelivery extends Delivery {
  readonly message: ReceivedMessage
}

/** A message to send. */
export interface Outgoing {
  readonly body: string
  readonly attributes: Attributes
  readonly delaySeconds?: number
  /** Message group, for FIFO queues and fair queues. */
  readonly group?: string
  /** Present for messages of FIFO queues. */
  readonly deduplicationId?: string
}

const CONTENT_TYPE = 'content-type' satisfies keyof SqsEventHeaderTable
const TYPE = 'ce-type' satisfies keyof SqsEventHeaderTable
const ENCODING = 'redrive-encoding' satisfies keyof SqsHeaderTable
const COUNT_BEFORE = 'redrive-delivery-count' satisfies keyof SqsHeaderTable
export const QUARANTINED: keyof SqsHeaderTable = 'redrive-quarantined'

export function toReceived(message: Message): ReceivedMessage {
  const { MessageId = '', ReceiptHandle = '', Body = '', Attributes: system = {} } = message
  return {
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    ...readAttributes(message.MessageAttributes),
    receives: Number(system.ApproximateReceiveCount ?? 1),
    group: system.MessageGroupId,
    system,
  }
}

export interface ContentOptions {
  readonly source: string
  readonly isFifo: boolean
  readonly unwrapSns?: boolean
}

export function contentOf(
  message: ReceivedMessage,
  { source, isFifo, unwrapSns: isUnwrapped = false }: ContentOptions,
): SqsDelivery {
  const { messageId, receives, own, group } = message
  const wrapped = isUnwrapped ? unwrapSns(message.body) : undefined
  const producers = [...(wrapped?.attributes ?? []), ...message.producers]
  const headers = Object.fromEntries(producers.map(([name, , value]) => [name, value]))
  const { [CONTENT_TYPE]: contentType, [TYPE]: type, ...others } = headers
  const decoded = decodeHeaders({ ...others, ...own })
  const id = decoded.id ?? messageId
  return {
    message,
    id,
    source,
    lane: isFifo ? group : undefined,
    key: decoded.key ?? id,
    type,
    bytes: wrapped === undefined ? toBytes(message.body, own[ENCODING]) : Buffer.from(wrapped.body),
    contentType,
    headers: decoded.foreign,
    cycle: decoded.cycle,
    deliveryCount: isFifo ? 1 : receives + countBefore(own),
    replayId: decoded.replayId,
    headerProblems: decoded.problems,
    ...(decoded.replaces === undefined ? {} : { replaces: decoded.replaces }),
  }
}

function countBefore({ [COUNT_BEFORE]: text }: Headers): number {
  return typeof text === 'string' && /^\d{1,6}$/.test(text) ? Number(text) : 0
}

// ---- copies -----------------------------------------------------------------------------------

export interface CopyOptions {
  readonly cycle: FailureCycle
  readonly reason?: string | undefined
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  /** Deliveries without a result so far, of a message that is returned. */
  readonly deliveries?: number
  readonly isQuarantined?: boolean
  readonly budgetBytes?: number
}

export interface Copy {
  readonly body: string
  readonly attributes: Attributes
  /** Number of failures removed from the history to fit the header budget. */
  readonly truncated: number
}

/** Returns a copy of the message with the updated failure history. Body and producer's attributes stay unchanged. */
export function copyOf(delivery: SqsDelivery, options: CopyOptions): Copy {
  const { id, key, source, replayId, replaces, message } = delivery
  const { cycle, reason, handler, stack, deliveries = 0, isQuarantined = false } = options
  const state = { id, key, source, replayId, replaces, cycle, reason, handler, stack }
  const { headers, truncated } = encodeHeaders(state, options.budgetBytes ?? HEADER_BUDGET_BYTES)
  const { [ENCODING]: encoding } = message.own
  const own = {
    ...headers,
    ...(encoding === undefined ? {} : { [ENCODING]: encoding }),
    ...(deliveries > 0 ? { [COUNT_BEFORE]: String(deliveries) } : {}),
    ...(isQuarantined ? { [QUARANTINED]: '1' } : {}),
  }
  return { body: message.body, attributes: writeAttributes(message.producers, own), truncated }
}

/** Returns the message to publish for a replay: the next cycle, which keeps only the number of the last one. */
export function replayOf({ delivery, envelope }: DrainedDeadLetter, replayId: string): Outgoing {
  const { id, key, source, replaces } = delivery
  const cycle = nextCycle(delivery.cycle)
  const state = { id, key, source, replayId, replaces, cycle, reason: undefined }
  return outgoingOf(delivery, envelope, encodeHeaders(state).headers)
}

/** Returns a message with these headers of Redrive, and the bytes and attributes of the delivery. */
export function outgoingOf(
  {
    bytes,
    contentType,
    type,
    headers,
  }: Pick<Delivery, 'bytes' | 'contentType' | 'type' | 'headers'>,
  { types = '{}', group }: Readonly<Record<string, string>>,
  own: Headers,
): Outgoing {
  const { text, encoding } = toText(bytes)
  const typeOf = JSON.parse(types) as Readonly<Record<string, string>>
  const described = { ...headers, [CONTENT_TYPE]: contentType, [TYPE]: type }
  const producers = Object.entries(described).flatMap(([name, value]): Attribute[] =>
    value === undefined || value === ''
      ? []
      : [
          [
            name,
            typeOf[name] ?? 'String',
            typeof value === 'string' ? value : JSON.stringify(value),
          ],
        ],
  )
  const { [ENCODING]: _, ...rest } = own
  return {
    body: text,
    attributes: writeAttributes(
      producers,
      encoding === undefined ? rest : { ...rest, [ENCODING]: encoding },
    ),
    ...(group === undefined ? {} : { group }),
  }
}

/**
 * Returns what a replay or a return to the dead-letter queue needs in addition to the delivery: the headers of Redrive,
 * the types of the attributes, the message group and the id of the message.
 */
export function envelopeOf(
  { producers, group, messageId }: ReceivedMessage,
  own: Headers,
): Record<string, string> {
  const types = producers
    .filter(([, type]) => type !== 'String')
    .map(([name, type]) => [name, type])
  return {
    deadLetterHeaders: JSON.stringify(own),
    messageId,
    ...(types.length === 0 ? {} : { types: JSON.stringify(Object.fromEntries(types)) }),
    ...(group === undefined ? {} : { group }),
  }
}
