import type { ConsumeMessage, Options } from 'amqplib'

export type Headers = Readonly<Record<string, unknown>>

export const NO_HEADERS: Headers = Object.freeze({})

/** Returns a value as a table; an empty one when it is not a table. Any program can write a header. */
export const tableAt = (value: unknown): Headers =>
  typeof value === 'object' && value !== null ? (value as Headers) : NO_HEADERS

/** The AMQP properties of a message. */
export interface Properties {
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

/** Returns typed properties; the client library types each of them as `any`. */
export const propertiesOf = ({ properties }: ConsumeMessage): Properties =>
  properties as unknown as Properties

/** Properties that a copy keeps unchanged. `userId`, `expiration` and the delivery mode are not among them. */
const COPIED_PROPERTIES = [
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

/** Returns the properties that a copy keeps unchanged. */
export function copiedProperties(properties: Properties): Options.Publish {
  const found: Record<string, unknown> = {}
  for (const name of COPIED_PROPERTIES)
    if (properties[name] !== undefined) found[name] = properties[name]
  return found
}
