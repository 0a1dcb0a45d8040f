import type { Options } from 'amqplib'
import { chosenType } from './header-types.ts'
import { type Headers, NO_HEADERS } from './properties.ts'

/** 64 KiB: the buffer that the client library encodes headers into. */
const TABLE_MAX = 65_536
/** 255 bytes: the longest name of a header. */
const NAME_MAX = 255

/**
 * Returns the size of headers. Throws a `RangeError` or `TypeError` for headers that the client library cannot
 * encode. amqplib before 1.0.4 must not try: it would assign the broker's confirm of the next message to this one, and
 * cut off headers that are too long.
 */
export function checkEncodable(headers: Headers): number {
  const bytes = bytesOfTable(headers)
  if (bytes > TABLE_MAX)
    throw new RangeError(
      `The headers have ${bytes} bytes, and amqplib encodes at most ${TABLE_MAX}.`,
    )
  return bytes
}

/**
 * Throws as well when headers and properties do not fit into one frame. The broker would close the connection, with
 * all other messages on it.
 */
export function checkPublishable(properties: Options.Publish, frameMax: number): void {
  const headers = checkEncodable((properties.headers ?? NO_HEADERS) as Headers)
  const texts = TEXTS.map((name) => properties[name] ?? '').map(String)
  const bytes = texts.reduce((sum, text) => sum + 1 + Buffer.byteLength(text), headers + FRAME)
  if (bytes > frameMax)
    throw new RangeError(
      `The headers and properties have ${bytes} bytes, and a frame of this connection has at most ${frameMax}. Raise "frame_max" of the broker, or "frameMax" in the address.`,
    )
}

/** 32 bytes of a frame without headers and texts: 8 around it, 14 at its start, 10 for priority, mode and timestamp. */
const FRAME = 32

const TEXTS = [
  'appId',
  'contentEncoding',
  'contentType',
  'correlationId',
  'expiration',
  'messageId',
  'replyTo',
  'type',
  'userId',
] as const satisfies readonly (keyof Options.Publish)[]

function bytesOfTable(table: Headers): number {
  let bytes = 4
  for (const [name, value] of Object.entries(table)) {
    if (value === undefined) continue
    const nameBytes = Buffer.byteLength(name)
    if (nameBytes > NAME_MAX)
      throw new RangeError(`The name of a header has ${nameBytes} bytes, more than ${NAME_MAX}.`)
    bytes += 1 + nameBytes + bytesOfValue(value)
  }
  return bytes
}

/** Returns the size of a value and of the tag before it. */
function bytesOfValue(value: unknown): number {
  if (value === null) return 1
  if (typeof value === 'string') return 5 + Buffer.byteLength(value)
  if (typeof value === 'boolean') return 2
  if (typeof value === 'number') return bytesOfTyped({ '!': chosenType(value), value })
  if (typeof value !== 'object')
    throw new TypeError(`A header of type ${typeof value} cannot be encoded.`)
  if (Buffer.isBuffer(value)) return 5 + value.length
  if (Array.isArray(value))
    return (value as readonly unknown[]).reduce<number>((sum, one) => sum + bytesOfValue(one), 5)
  return Object.hasOwn(value, '!')
    ? bytesOfTyped(value as TypedValue)
    : 1 + bytesOfTable(value as Headers)
}

/** A value with its type, in the notation of the client library. */
interface TypedValue {
  readonly '!': unknown
  readonly value?: unknown
}

/** The whole numbers of the notation: their bytes, and whether they have a sign. */
const INTEGERS: ReadonlyMap<unknown, readonly [bytes: number, isSigned: boolean]> = new Map([
  ['int8', [1, true]],
  ['uint8', [1, false]],
  ['int16', [2, true]],
  ['uint16', [2, false]],
  ['int32', [4, true]],
  ['uint32', [4, false]],
  ['int64', [8, true]],
  ['timestamp', [8, false]],
])

/** Other types of the notation, with their bytes. */
const OTHERS: ReadonlyMap<unknown, readonly [bytes: number, isValid: (value: unknown) => boolean]> =
  new Map([
    ['float', [4, (value: unknown) => typeof value === 'number']],
    ['double', [8, (value: unknown) => typeof value === 'number']],
    ['decimal', [5, isDecimal]],
  ])

function bytesOfTyped({ '!': type, value }: TypedValue): number {
  const [bytes, isSigned] = INTEGERS.get(type) ?? []
  if (bytes !== undefined && isInteger(value, bytes, isSigned === true)) return 1 + bytes
  const [otherBytes, isValid] = OTHERS.get(type) ?? []
  if (otherBytes !== undefined && isValid?.(value) === true) return 1 + otherBytes
  throw new TypeError(
    `A header has the type ${String(type)}, but its value is not valid for this type.`,
  )
}

function isInteger(value: unknown, bytes: number, isSigned: boolean): boolean {
  const isText = typeof value === 'string' && /^-?\d{1,20}$/.test(value)
  if (!isText && !(typeof value === 'number' && Number.isInteger(value))) return false
  const number = BigInt(value)
  const bits = bytes * 8
  return (isSigned ? BigInt.asIntN(bits, number) : BigInt.asUintN(bits, number)) === number
}

function isDecimal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { places, digits } = value as { readonly places?: unknown; readonly digits?: unknown }
  return isInteger(places, 1, false) && isInteger(digits, 4, false)
}
