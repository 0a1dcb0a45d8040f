import { randomUUID } from 'node:crypto'
import { type Delivery, type FailureCycle, FIRST_CYCLE, RedriveError } from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { checkValue } from '../message.ts'
import type { Awaitable } from '../awaitable.ts'
import { messageOf } from '../log/text.ts'
import type { OutboundEvent } from '../ports/sink.ts'

export const SEVERITIES = ['debug', 'info', 'warning', 'error', 'fatal'] as const

export type Severity = (typeof SEVERITIES)[number]

/** The header that contains the severity. */
export const SEVERITY_HEADER = 'severity'

/** An event as the application writes it. */
export interface EventInput<Type extends string = string, Data = unknown> {
  /** The type of the event, such as `order.paid`. */
  readonly type: Type
  /** The content. Bytes are sent unchanged, everything else as JSON. */
  readonly data: Data
  /** Default: a random UUID. */
  readonly id?: string
  /** Business idempotency key. Default: the id. */
  readonly key?: string
  /** The unit of ordering, where the destination has one. */
  readonly lane?: string
  /** When it happened, epoch ms. Default: now. */
  readonly at?: number
  /** Default 'info'. */
  readonly severity?: Severity
  readonly headers?: Readonly<Record<string, string>>
}

export type Schemas = Readonly<Record<string, StandardSchemaV1>>

/** Returns the event with validated data, when its type has a schema. */
export function checked(input: EventInput, schemas: Schemas): Awaitable<EventInput> {
  const schema = Object.hasOwn(schemas, input.type) ? schemas[input.type] : undefined
  if (schema === undefined) return input
  const result = checkValue(input.data, schema)
  return result instanceof Promise
    ? result.then((data: unknown) => ({ ...input, data }))
    : { ...input, data: result }
}

/** Returns the event in the form that sinks receive. */
export function outboundOf(input: EventInput, now: number): OutboundEvent {
  const { id = randomUUID(), type, data, severity = 'info', headers } = input
  const isBytes = data instanceof Uint8Array
  return {
    id,
    key: input.key ?? id,
    type,
    lane: input.lane,
    at: input.at ?? now,
    bytes: isBytes ? data : jsonOf(data),
    contentType: isBytes ? 'application/octet-stream' : 'application/json',
    headers: { ...headers, [SEVERITY_HEADER]: severity },
  }
}

/** Returns the event as a delivery, for rules that also apply to consumers. */
export const deliveryOf = (
  { id, key, type, lane, bytes, contentType, headers }: OutboundEvent,
  source: string,
  cycle: FailureCycle = FIRST_CYCLE,
): Delivery => ({
  id,
  source,
  lane,
  key,
  type,
  bytes,
  contentType,
  headers,
  cycle,
  deliveryCount: 1,
  replayId: undefined,
  headerProblems: [],
})

function jsonOf(data: unknown): Uint8Array {
  try {
    return Buffer.from(JSON.stringify(data) ?? 'null')
  } catch (cause) {
    const text = `The data cannot be serialized as JSON: ${messageOf(cause)}`
    throw new RedriveError('PAYLOAD_INVALID', text, { cause })
  }
}
