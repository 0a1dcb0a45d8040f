import type { DrainedDeadLetter } from '@redrive/runtime'

/**
 * Encodes a message that cannot be catalogued. Unlike the codec of dead letters, it never throws: it uses no
 * recursion, so depth does not matter, and it accepts values that refer to themselves. Each value is one line of
 * JSON; lists and tables contain the line numbers of their values. The first line is the whole value.
 */
type Line = string | number | boolean | null | readonly [kind: string, ...content: unknown[]]

export function encodeMessage({ delivery, ...rest }: DrainedDeadLetter): Buffer {
  const { bytes: _, ...others } = delivery
  return encodeAny({ ...rest, delivery: others })
}

export function decodeMessage(encoded: Uint8Array, bytes: Uint8Array): DrainedDeadLetter {
  const decoded = decodeAny(encoded) as Omit<DrainedDeadLetter, 'delivery'> & {
    readonly delivery: Omit<DrainedDeadLetter['delivery'], 'bytes'>
  }
  return { ...decoded, delivery: { ...decoded.delivery, bytes } }
}

export function encodeAny(root: unknown): Buffer {
  const values: unknown[] = [root]
  const numbers = new Map<object, number>()
  const lines: string[] = []
  const numberOf = (value: unknown): number => {
    const known = isObject(value) ? numbers.get(value) : undefined
    if (known !== undefined) return known
    if (isObject(value)) numbers.set(value, values.length)
    return values.push(value) - 1
  }
  if (isObject(root)) numbers.set(root, 0)
  // The list grows while it is read.
  for (let at = 0; at < values.length; at++) {
    lines.push(JSON.stringify(lineOf(values[at], numberOf)))
  }
  return Buffer.from(lines.join('\n'))
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

function lineOf(value: unknown, numberOf: (value: unknown) => number): Line {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return numberLine(value)
  if (value instanceof Uint8Array) return ['bytes', base64(value)]
  if (value instanceof Date) return ['date', String(value.getTime())]
  if (Array.isArray(value)) return ['list', ...Array.from(value, numberOf)]
  if (isObject(value))
    return [
      'table',
      ...Object.keys(value).flatMap((name) => [name, numberOf(propertyOf(value, name))]),
    ]
  // No broker delivers a function or a symbol; its text is kept.
  return [typeof value, String(value as bigint | symbol | undefined)]
}

function numberLine(value: number): Line {
  if (Object.is(value, -0)) return ['number', '-0']
  return Number.isFinite(value) ? value : ['number', String(value)]
}

const base64 = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

/** Returns a property, or the text of the error if reading it throws. */
function propertyOf(value: object, name: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>>)[name]
  } catch (error) {
    return String(error)
  }
}

export function decodeAny(encoded: Uint8Array): unknown {
  const text = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength).toString()
  const lines = text.split('\n').map((line) => JSON.parse(line) as Line)
  const values = lines.map(emptyValue)
  lines.forEach((line, at) => {
    if (Array.isArray(line)) fill(values[at], line as readonly unknown[], values)
  })
  return values[0]
}

/** Values by kind. Lists and tables are filled when all values exist. */
const EMPTY: Readonly<Record<string, (content: unknown) => unknown>> = {
  list: () => [],
  table: () => ({}),
  bytes: (content) => Buffer.from(content as string, 'base64'),
  date: (content) => new Date(Number(content)),
  number: Number,
  bigint: (content) => BigInt(content as string),
  undefined: () => undefined,
}

function emptyValue(line: Line): unknown {
  if (!isObject(line)) return line
  const [kind, content] = line
  return (EMPTY[kind] ?? String)(content)
}

function fill(value: unknown, [kind, ...content]: readonly unknown[], values: readonly unknown[]) {
  if (kind === 'list') for (const at of content) (value as unknown[]).push(values[at as number])
  if (kind !== 'table') return
  for (let at = 0; at < content.length; at += 2) {
    // An assignment to `__proto__` would change the prototype.
    Object.defineProperty(value, content[at] as string, {
      value: values[content[at + 1] as number],
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
}
