import type { MessageAttributeValue } from '@aws-sdk/client-sqs'
import { isRecord } from '@redrive/core/internal'
import { HEADER_PREFIX } from '@redrive/core'
import type { SqsHeaderTable } from './header-tables.ts'

/** Name, data type and value of a producer's attribute. The value of binary types is base64. */
export type Attribute = readonly [name: string, type: string, value: string]

export type Attributes = Record<string, MessageAttributeValue>
export type Headers = Readonly<Record<string, unknown>>

/** The attribute that contains all headers of Redrive. */
const OWN = 'redrive'
/** The limit of SQS. */
const MAX_ATTRIBUTES = 10
const OVERFLOW: keyof SqsHeaderTable = 'redrive-attributes'

/** Reads the attributes of a message: those of the producer, and the headers of Redrive. */
export function readAttributes(raw: Readonly<Attributes> | undefined): {
  readonly producers: readonly Attribute[]
  readonly own: Headers
} {
  const all = Object.entries(raw ?? {}).map(toAttribute)
  const own = Object.fromEntries(
    // A producer may set a header of Redrive, such as the key, as an attribute.
    all.flatMap(([name, , value]) => (isOwn(name) ? [[name, value]] : [])),
  )
  const { [OVERFLOW]: overflow, ...stored } = readOwn(raw?.[OWN]?.StringValue)
  const producers = all.filter(([name]) => name !== OWN && !isOwn(name))
  return { producers: [...producers, ...readList(overflow)], own: { ...own, ...stored } }
}

const isOwn = (name: string) => name.startsWith(HEADER_PREFIX)

const toAttribute = ([name, value]: readonly [string, MessageAttributeValue]): Attribute => [
  name,
  value.DataType ?? 'String',
  value.StringValue ?? Buffer.from(value.BinaryValue ?? []).toString('base64'),
]

/** Returns attributes of a copy. Those over the limit are part of the headers of Redrive. */
export function writeAttributes(producers: readonly Attribute[], own: Headers): Attributes {
  const most = MAX_ATTRIBUTES - 1
  const kept = producers.length > most ? producers.slice(0, most) : producers
  const rest = producers.slice(kept.length)
  const all = rest.length === 0 ? own : { ...own, [OVERFLOW]: JSON.stringify(rest) }
  return {
    ...Object.fromEntries(kept.map(([name, type, value]) => [name, toValue(type, value)])),
    ...(Object.keys(all).length === 0 ? {} : { [OWN]: toValue('String', JSON.stringify(all)) }),
  }
}

export const toValue = (type: string, value: string): MessageAttributeValue =>
  type.startsWith('Binary')
    ? { DataType: type, BinaryValue: Buffer.from(value, 'base64') }
    : { DataType: type, StringValue: value }

/** Returns the bytes that SQS counts. */
export function sizeOf(body: string, attributes: Readonly<Attributes>): number {
  let size = Buffer.byteLength(body)
  for (const [name, { DataType = '', StringValue = '', BinaryValue }] of Object.entries(attributes))
    size +=
      Buffer.byteLength(name + DataType) +
      (BinaryValue?.byteLength ?? Buffer.byteLength(StringValue))
  return size
}

/** Damaged headers are passed on as one: `decodeHeaders` reports that it cannot read them. */
function readOwn(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {}
  const value = parse(text)
  return isRecord(value) ? { ...value } : { 'redrive-version': text }
}

function readList(text: unknown): readonly Attribute[] {
  const list = typeof text === 'string' ? parse(text) : []
  return Array.isArray(list) ? list.filter(isAttribute) : []
}

const isAttribute = (value: unknown): value is Attribute =>
  Array.isArray(value) && value.length === 3 && value.every((part) => typeof part === 'string')

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: another program wrote the attribute.
    return undefined
  }
}
