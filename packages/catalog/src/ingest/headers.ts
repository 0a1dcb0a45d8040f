import { MASKED } from '../masking/mask-body.ts'
import { NAME_MAX, storable } from '../text.ts'

/** 64 headers of 1,000 characters, 16,000 in total: enough to read. The encoded dead letter keeps all headers. */
const COUNT_MAX = 64
const VALUE_MAX = 1_000
const TOTAL_MAX = 16_000

/** The name of the entry that counts omitted headers. */
const LEFT_OUT = '…'

/** Returns the headers for display and filters, bounded and masked, as JSON text for a jsonb column. */
export function readableHeaders(
  headers: Readonly<Record<string, unknown>>,
  masked: ReadonlySet<string>,
): string {
  const names = Object.keys(headers)
  const shown: [string, unknown][] = []
  let room = TOTAL_MAX
  for (const name of names.slice(0, COUNT_MAX)) {
    const value = masked.has(name.toLowerCase()) ? MASKED : readable(headers[name])
    room -= name.length + value.length
    if (room < 0) break
    shown.push([storable(name, NAME_MAX), value])
  }
  const leftOut = names.length - shown.length
  if (leftOut > 0) shown.push([LEFT_OUT, leftOut])
  return JSON.stringify(Object.fromEntries(shown))
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function readable(value: unknown): string {
  if (typeof value === 'string') return storable(value, VALUE_MAX)
  if (value instanceof Uint8Array) return storable(textOf(value), VALUE_MAX)
  if (typeof value !== 'object' || value === null) return String(value)
  // encodeDeadLetter() has checked the depth before.
  return storable(JSON.stringify(value, withoutBigInts), VALUE_MAX)
}

const withoutBigInts = (_: string, value: unknown) =>
  typeof value === 'bigint' ? String(value) : value

function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes.subarray(0, VALUE_MAX))
  } catch {
    return `0x${Buffer.from(bytes.subarray(0, VALUE_MAX)).toString('hex')}`
  }
}
