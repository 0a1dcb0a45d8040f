import { randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { checkValue } from '../message.ts'
import type { Awaitable, OutboundEvent } from '../ports.ts'

export const SEVERITIES = ['debug', 'info', 'warning', 'error', 'fatal'] as const

export type Severity = (typeof SEVERITIES)[number]

/** The header in which the severity travels. */
export const SEVERITY_HEADER = 'severity'

/** What happened, as you say it. */
export interface EventInput<Type extends string = string, Data = unknown> {
  /** What kind of event: `order.paid`. */
  readonly type: Type
  /** What there is to say. Bytes go out as they are, everything else as JSON. */
  readonly data: Data
  /** Default: a random UUID. */
  readonly id?: string
  /** Business idempotency key. Default: the id. */
  readonly key?: string
  /** The unit of order it belongs to, where the destination keeps one. */
  readonly lane?: string
  /** When it happened, epoch ms. Default: now. */
  readonly at?: number
  /** Default 'info'. */
  readonly severity?: Severity
  readonly headers?: Readonly<Record<string, string>>
}

export type Schemas = Readonly<Record<string, StandardSchemaV1>>

/** The event with its data checked, when there is a schema for its type. */
export function checked(input: EventInput, schemas: Schemas): Awaitable<EventInput> {
  const schema = Object.hasOwn(schemas, input.type) ? schemas[input.type] : undefined
  if (schema === undefined) return input
  const result = checkValue(input.data, schema)
  return result instanceof Promise
    ? result.then((data: unknown) => ({ ...input, data }))
    : { ...input, data: result }
}

/** The event as sinks get it. */
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

function jsonOf(data: unknown): Uint8Array {
  try {
    return Buffer.from(JSON.stringify(data) ?? 'null')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RedriveError('PAYLOAD_INVALID', `The data cannot be written as JSON: ${why}`, {
      cause,
    })
  }
}
