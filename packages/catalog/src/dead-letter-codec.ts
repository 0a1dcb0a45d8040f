import type { DrainedDeadLetter } from '@redrive/runtime'

/**
 * Encodes a drained dead letter without its body. Decoding loses nothing, because a replay must send exactly
 * what arrived. JSON escapes NUL and lone surrogates; values that JSON cannot represent are tagged. An object
 * with the single key `$` is a tag, so an object that has this key itself is tagged, too.
 */
const TAG = '$'

/** 64 levels: headers are flat in practice, and hostile headers must not exhaust the stack. */
const DEPTH_MAX = 64

/** 16 MiB: ten times what brokers allow for headers. */
const BYTES_MAX = 16_777_216

/** An error for headers that cannot be encoded without loss. */
export class UnreadableHeaders extends Error {}

export function encodeDeadLetter(deadLetter: DrainedDeadLetter): Buffer {
  const { delivery, ...rest } = deadLetter
  const { bytes: _, ...others } = delivery
  const encoded = Buffer.from(encodeExactly({ ...rest, delivery: others }))
  if (encoded.length > BYTES_MAX) throw new UnreadableHeaders(`larger than ${BYTES_MAX} bytes`)
  return encoded
}

export function decodeDeadLetter(encoded: Uint8Array, bytes: Uint8Array): DrainedDeadLetter {
  const parsed: unknown = JSON.parse(Buffer.from(encoded).toString())
  const decoded = decode(parsed) as Omit<DrainedDeadLetter, 'delivery'> & {
    readonly delivery: Omit<DrainedDeadLetter['delivery'], 'bytes'>
  }
  return { ...decoded, delivery: { ...decoded.delivery, bytes } }
}

/** Returns a value as text. Different values have different texts. */
export const encodeExactly = (value: unknown): string => JSON.stringify(encode(value, 0))

function encode(value: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX) throw new UnreadableHeaders(`nested deeper than ${DEPTH_MAX} levels`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return encodeNumber(value)
  if (value === undefined) return { [TAG]: ['undefined'] }
  if (typeof value === 'bigint') return { [TAG]: ['bigint', String(value)] }
  if (value instanceof Uint8Array) return { [TAG]: ['bytes', base64(value)] }
  if (value instanceof Date) return { [TAG]: ['date', encodeNumber(value.getTime())] }
  if (Array.isArray(value)) return value.map((one) => encode(one, depth + 1))
  if (typeof value === 'object') return encodeObject(value, depth)
  throw new UnreadableHeaders(`a ${typeof value} cannot be stored`)
}

const base64 = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

function encodeNumber(value: number): unknown {
  const isPlain = Number.isFinite(value) && !Object.is(value, -0)
  return isPlain ? value : { [TAG]: ['number', Object.is(value, -0) ? '-0' : String(value)] }
}

/** Takes half the time of `fromEntries`. An assignment to `__proto__` would change the prototype. */
function encodeObject(value: object, depth: number): unknown {
  const object: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const encoded = encode((value as Readonly<Record<string, unknown>>)[name], depth + 1)
    if (name === '__proto__')
      Object.defineProperty(object, name, { value: encoded, enumerable: true })
    else object[name] = encoded
  }
  return Object.hasOwn(value, TAG) ? { [TAG]: ['object', object] } : object
}

function decode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(decode)
  return Object.hasOwn(value, TAG) ? decodeTag(value) : decodeObject(value)
}

function decodeTag(tagged: object): unknown {
  const [kind, content] = (tagged as { readonly $: readonly [string, unknown?] })[TAG]
  if (kind === 'undefined') return undefined
  if (kind === 'bigint') return BigInt(content as string)
  if (kind === 'bytes') return Buffer.from(content as string, 'base64')
  if (kind === 'number') return Number(content)
  if (kind === 'date') return new Date(decode(content) as number)
  return decodeObject(content as object)
}

function decodeObject(value: object): unknown {
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, decode(one)]))
}
