import { isUtf8 } from 'node:buffer'
import {
  type DecodedHeaders,
  type Delivery,
  decodeHeaders,
  encodeHeaders,
  type FailureCycle,
} from '@redrive/core'
import { CAPABILITIES } from './capabilities.ts'
import type { RedisHeaderTable } from './header-tables.ts'

/** A delivery with its entry, whose consumer and count prove who owns it. */
export interface RedisStreamDelivery extends Delivery {
  readonly entry: EntryRef
}

/** The location of an entry. */
export interface EntryRef {
  /** Whether it is in the stream that only the group has. */
  readonly isOwn: boolean
  readonly id: string
  /** How often the server delivered it. */
  readonly count: number
}

/** An entry of a stream as a script returns it. */
export interface Entry extends EntryRef {
  /** Names and values in turn. */
  readonly fields: readonly Buffer[]
}

export type Field = string | Buffer

/** Names of fields with the content type and the type of an event. */
const CONTENT_TYPE = 'content-type'
const TYPE = 'type'
const BODY = 'redrive-body' satisfies keyof RedisHeaderTable
const HEADERS: keyof RedisHeaderTable = 'redrive-headers'
/** 1,000: a script can pass about 8,000 values to a command. */
const MAX_HEADERS = 1_000
export const QUARANTINED: keyof RedisHeaderTable = 'redrive-quarantined'

export function toDelivery(source: string, entry: Entry, bodyField: string): RedisStreamDelivery {
  const { isOwn, id: entryId, count, fields } = entry
  const { bytes, contentType, type, headers } = contentOf(fields, bodyField)
  const decoded: DecodedHeaders = decodeHeaders(headers)
  const id = decoded.id ?? `${source}/${entryId}`
  return {
    entry: { isOwn, id: entryId, count },
    id,
    source,
    lane: undefined,
    key: decoded.key ?? id,
    type,
    bytes,
    contentType,
    headers: decoded.foreign,
    cycle: decoded.cycle,
    deliveryCount: count,
    replayId: decoded.replayId,
    headerProblems: decoded.problems,
    ...(decoded.replaces === undefined ? {} : { replaces: decoded.replaces }),
  }
}

interface Content {
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly type: string | undefined
  readonly headers: Readonly<Record<string, Field>>
}

/** Returns the parts of an entry. Without a field for the body, all fields of the producer are the body. */
export function contentOf(fields: readonly Buffer[], bodyField: string): Content {
  const byName = new Map<string, Buffer>()
  for (let i = 0; i + 1 < fields.length; i += 2) {
    byName.set(String(fields[i]), fields[i + 1] ?? NO_BYTES)
  }
  const packed = byName.get(HEADERS)
  byName.delete(HEADERS)
  const bytes = byName.get(BODY) ?? byName.get(bodyField)
  if (bytes !== undefined) byName.delete(byName.has(BODY) ? BODY : bodyField)
  const type = byName.get(TYPE)?.toString()
  const named = [...byName].map(([name, value]) => [name, fieldText(value)] as const)
  const headers = new Map([...unpackHeaders(packed), ...named])
  if (bytes === undefined) return fieldsAsBody(headers, type)
  const contentType = byName.get(CONTENT_TYPE)?.toString()
  for (const name of [TYPE, CONTENT_TYPE]) headers.delete(name)
  return { bytes, contentType, type, headers: Object.fromEntries(headers) }
}

function fieldsAsBody(fields: ReadonlyMap<string, Field>, type: string | undefined): Content {
  const isOfRedrive = ([name]: readonly [string, Field]) => name.startsWith('redrive-')
  const body = [...fields].filter((field) => !isOfRedrive(field))
  const text = JSON.stringify(
    Object.fromEntries(body.map(([name, value]) => [name, String(value)])),
  )
  return {
    bytes: Buffer.from(text),
    contentType: 'application/json',
    type,
    headers: Object.fromEntries([...fields].filter(isOfRedrive)),
  }
}

const NO_BYTES = Buffer.alloc(0)

/** A value that is not text stays bytes, so that copies contain it unchanged. */
const fieldText = (value: Buffer): Field => (isUtf8(value) ? value.toString() : value)

export interface CopyState {
  readonly cycle: FailureCycle
  readonly reason?: string | undefined
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  readonly replayId?: string | undefined
}

/** Returns the fields of a copy with this state, and how many failures did not fit. */
export function copyOf(
  delivery: Delivery,
  { cycle, reason, handler, stack, replayId = delivery.replayId }: CopyState,
): { readonly fields: readonly Field[]; readonly truncated: number } {
  const { id, key, source, replaces } = delivery
  const state = { id, key, source, replayId, replaces, cycle, reason, handler, stack }
  const { headers, truncated } = encodeHeaders(state, CAPABILITIES.headerBudgetBytes)
  return { fields: [...producersFields(delivery), ...Object.entries(headers).flat()], truncated }
}

/** Returns the fields of a message without the state of Redrive. */
export function producersFields({ bytes, contentType, type, headers }: Delivery): Field[] {
  const fields: Field[] = [BODY, toBuffer(bytes)]
  if (contentType !== undefined) fields.push(CONTENT_TYPE, contentType)
  if (type !== undefined) fields.push(TYPE, type)
  const named = Object.entries(headers).map(([name, value]): readonly [string, Field] => {
    return [name, Buffer.isBuffer(value) ? value : String(value)]
  })
  if (named.length > MAX_HEADERS) return [...fields, HEADERS, packHeaders(named)]
  return [...fields, ...named.flat()]
}

/** Returns headers as one text. A value that is not text is a list with its base64. */
function packHeaders(headers: readonly (readonly [string, Field])[]): string {
  const isBytes = (value: Field) => Buffer.isBuffer(value)
  return JSON.stringify(
    headers.map(([name, value]) => [name, isBytes(value) ? [value.toString('base64')] : value]),
  )
}

function unpackHeaders(packed: Buffer | undefined): readonly (readonly [string, Field])[] {
  if (packed === undefined) return []
  const headers = JSON.parse(packed.toString()) as readonly [string, string | [string]][]
  return headers.map(([name, value]) => [
    name,
    typeof value === 'string' ? value : Buffer.from(value[0], 'base64'),
  ])
}

export const toBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
