import { cycleFromReport, type FailureCycle } from '@redrive/core'
import type { ConsumeMessage } from 'amqplib'
import type { ForeignDeath } from './foreign.ts'
import {
  copiedProperties,
  type Headers,
  NO_HEADERS,
  propertiesOf,
  tableAt,
} from './message/properties.ts'

/** A message that EasyNetQ put into an error message, as text of JSON. */
export interface WrappedMessage {
  /** The message as its consumer received it: body, headers and properties. */
  readonly message: ConsumeMessage
  readonly death: ForeignDeath
  /** The error message itself: body and properties. It is stored, so that it can be put back. */
  readonly outer: string
}

/** The type of an error message: `EasyNetQ.SystemMessages.Error, EasyNetQ`, in old releases with a colon. */
const ERROR_TYPE = /^EasyNetQ\.SystemMessages\.Error\b/

/** 16 MiB: the largest message that RabbitMQ accepts by default. A larger one would be in memory several times. */
const UNWRAP_BYTES = 16_777_216
/** 64 KiB of an exception: its type, its message and many frames. */
const EXCEPTION_MAX = 65_536

/**
 * Returns the message inside an error message of EasyNetQ, or undefined for any other message. EasyNetQ stores the
 * body, the headers and the address of the failed message in the body of a new message, and not in headers. An error
 * message above 16 MiB is not read.
 */
export function unwrapEasyNetQ(raw: ConsumeMessage): WrappedMessage | undefined {
  const { type = '', headers = NO_HEADERS } = propertiesOf(raw)
  if (!ERROR_TYPE.test(type) || Object.keys(headers).some(isOfConsumer)) return undefined
  if (raw.content.length > UNWRAP_BYTES) return undefined
  const text = raw.content.toString()
  const error = tableIn(text)
  const { Message: body, Exception: exception, BasicProperties: properties } = error
  if (typeof body !== 'string' || typeof exception !== 'string') return undefined
  // Bytes that are not text could not be put back unchanged.
  if (!raw.content.equals(Buffer.from(text))) return undefined
  const message = {
    ...raw,
    content: Buffer.from(body),
    properties: innerProperties(tableAt(properties)),
  }
  return {
    message: message as unknown as ConsumeMessage,
    death: deathOf(error, exception.slice(0, EXCEPTION_MAX)),
    outer: JSON.stringify({ ...copiedProperties(propertiesOf(raw)), body: text }),
  }
}

/** Whether a header shows that a consumer of error messages failed. Then the error message itself is the dead letter. */
const isOfConsumer = (name: string) => name === 'x-death' || name.startsWith('redrive-')

function tableIn(text: string): Headers {
  try {
    return tableAt(JSON.parse(text) as unknown)
  } catch {
    // Any program can write the type of a message. Without JSON it is a message like others.
    return {}
  }
}

function deathOf(error: Headers, exception: string): ForeignDeath {
  const { Queue: queue, Exchange: exchange, RoutingKey: routingKey } = error
  const isAddressed = typeof exchange === 'string' && typeof routingKey === 'string'
  return {
    reason: 'easynetq_failed',
    // Releases before 5 do not write the queue.
    origin: typeof queue === 'string' && queue !== '' ? queue : undefined,
    address: isAddressed ? { exchange, routingKey } : undefined,
    cycle: cycleOf(exception, error['DateTime']),
  }
}

/** Reads the text of a .NET exception: type, message and stack. */
function cycleOf(exception: string, time: unknown): FailureCycle {
  const [first = ''] = exception.split(/\n[ \t]+at | ---> /, 1)
  const head = first.trimEnd()
  const [, type, message] = /^([\w.+`]+)(?:: ([^]*))?$/.exec(head) ?? [undefined, undefined, head]
  const at = typeof time === 'string' ? Date.parse(time) : Number.NaN
  return cycleFromReport({
    type,
    message: message ?? head,
    stack: exception,
    at: Number.isNaN(at) ? undefined : at,
    attempts: 1,
  })
}

/** AMQP properties by their names in the error message. */
const PROPERTIES = {
  ContentType: 'contentType',
  ContentEncoding: 'contentEncoding',
  CorrelationId: 'correlationId',
  ReplyTo: 'replyTo',
  MessageId: 'messageId',
  Type: 'type',
  AppId: 'appId',
  Priority: 'priority',
  Timestamp: 'timestamp',
} as const

const NUMBERS: readonly string[] = ['Priority', 'Timestamp']

function innerProperties(said: Headers): Headers {
  const properties = Object.entries(PROPERTIES).flatMap(([name, own]) =>
    isPresent(said, name) ? [[own, said[name]] as const] : [],
  )
  const headers = tableAt(said['Headers'])
  return { ...Object.fromEntries(properties), ...(hasKeys(headers) ? { headers } : {}) }
}

/** EasyNetQ writes absent properties as null or 0, and a second value that states whether each is present. */
function isPresent(said: Headers, name: string): boolean {
  const value = said[name]
  if (NUMBERS.includes(name)) {
    const isGiven = said[`${name}Present`] ?? value !== 0
    return isGiven === true && Number.isSafeInteger(value)
  }
  return typeof value === 'string'
}

const hasKeys = (table: Headers) => Object.keys(table).length > 0
