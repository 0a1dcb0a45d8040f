import type { Headers } from './properties.ts'

/** 64 KiB: the buffer that the client library encodes headers into. */
const TABLE_MAX = 65_536
/** 255 bytes: the longest name of a header. */
const NAME_MAX = 255

/**
 * Throws a `RangeError` or `TypeError` for headers that the client library cannot encode. amqplib before 1.0.4 must
 * not try: it would assign the broker's confirm of the next message to this one, and cut off headers that are too long.
 */
export function checkEncodable(headers: Headers): void {
  const bytes = bytesOfTable(headers)
  if (bytes > TABLE_MAX)
    throw new RangeError(
      `The headers have ${bytes} bytes, and amqplib encodes at most ${TABLE_MAX}.`,
    )
}

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
  if (typeof value === 'number') return 9
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

/** The types of the notation that the headers of messages contain. */
const TYPES: readonly unknown[] = [
  ...['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'float', 'double'],
  ...['timestamp', 'decimal'],
]

function bytesOfTyped({ '!': type, value }: TypedValue): number {
  const isKnown = TYPES.includes(type) && (type === 'decimal' ? isDecimal(value) : isNumber(value))
  if (!isKnown) throw new TypeError('A header has the name "!", which amqplib uses for types.')
  return 9
}

const isNumber = (value: unknown) => typeof value === 'number' || typeof value === 'string'

function isDecimal(value: unknown): boolean {
  const { places, digits } = (value ?? {}) as {
    readonly places?: unknown
    readonly digits?: unknown
  }
  return typeof places === 'number' && typeof digits === 'number'
}
