import { type Headers, tableAt } from './properties.ts'

/**
 * The AMQP types of numbers in headers, where the client library would choose another type. It decodes every number
 * to a JavaScript number and encodes that with the smallest type. A consumer in another language can then fail: a
 * Java program that expects a `Long` receives a `Byte`.
 */
export interface HeaderTypes {
  readonly [name: string]: HeaderType
}

/** The type of a number, or the types in a table or a list; null for a value that needs no type. */
type HeaderType = string | HeaderTypes | readonly (HeaderType | null)[]

interface NumberType {
  readonly name: string
  readonly bytes: number
  readonly read: (table: Buffer, at: number) => number | bigint
}

/** The types of numbers by their tag in a field table, with the names that the client library uses for them. */
const NUMBER_TYPES: ReadonlyMap<string, NumberType> = new Map([
  ['b', { name: 'int8', bytes: 1, read: (table, at) => table.readInt8(at) }],
  ['B', { name: 'uint8', bytes: 1, read: (table, at) => table.readUInt8(at) }],
  ['s', { name: 'int16', bytes: 2, read: (table, at) => table.readInt16BE(at) }],
  ['u', { name: 'uint16', bytes: 2, read: (table, at) => table.readUInt16BE(at) }],
  ['I', { name: 'int32', bytes: 4, read: (table, at) => table.readInt32BE(at) }],
  ['i', { name: 'uint32', bytes: 4, read: (table, at) => table.readUInt32BE(at) }],
  ['l', { name: 'int64', bytes: 8, read: (table, at) => table.readBigInt64BE(at) }],
  ['f', { name: 'float', bytes: 4, read: (table, at) => table.readFloatBE(at) }],
  ['d', { name: 'double', bytes: 8, read: (table, at) => table.readDoubleBE(at) }],
] satisfies [string, NumberType][])

/** Sizes of the other values with a fixed size: boolean, null and decimal. */
const FIXED_BYTES: ReadonlyMap<string, number> = new Map([
  ['t', 1],
  ['V', 0],
  ['D', 5],
])

/** 64 levels: hostile headers must not exhaust the stack. */
const DEPTH_MAX = 64

/** Returns the types in an encoded field table, or undefined when none is needed or the table is malformed. */
export function readHeaderTypes(table: Buffer): HeaderTypes | undefined {
  try {
    return readTable({ table, at: 0 }, table.length, 0)
  } catch (error) {
    // A value that ends behind the table. The client library reports the malformed frame.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

interface Cursor {
  readonly table: Buffer
  at: number
}

function readTable(cursor: Cursor, end: number, depth: number): HeaderTypes | undefined {
  const found: [string, HeaderType][] = []
  while (cursor.at < end) {
    const start = cursor.at + 1
    cursor.at = start + cursor.table.readUInt8(cursor.at)
    const nameEnd = cursor.at
    const type = readValue(cursor, depth)
    if (type !== undefined) found.push([cursor.table.toString('utf8', start, nameEnd), type])
  }
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

function readList(cursor: Cursor, end: number, depth: number): HeaderType | undefined {
  const found: (HeaderType | null)[] = []
  while (cursor.at < end) found.push(readValue(cursor, depth) ?? null)
  return found.every((type) => type === null) ? undefined : found
}

function readValue(cursor: Cursor, depth: number): HeaderType | undefined {
  if (depth > DEPTH_MAX) throw new RangeError('The headers are nested too deeply.')
  const tag = String.fromCharCode(cursor.table.readUInt8(cursor.at))
  cursor.at += 1
  const number = NUMBER_TYPES.get(tag)
  if (number !== undefined) return readNumber(cursor, number)
  if (tag === 'T') return readTimestamp(cursor)
  const bytes = FIXED_BYTES.get(tag)
  if (bytes !== undefined) {
    cursor.at += bytes
    return undefined
  }
  const start = cursor.at + 4
  const end = start + cursor.table.readUInt32BE(cursor.at)
  cursor.at = start
  if (tag === 'F') return readTable(cursor, end, depth + 1)
  if (tag === 'A') return readList(cursor, end, depth + 1)
  cursor.at = end
  return undefined
}

/** The client library keeps the type of a timestamp, but rounds its value. */
function readTimestamp(cursor: Cursor): string | undefined {
  const value = cursor.table.readBigUInt64BE(cursor.at)
  cursor.at += 8
  return Number.isSafeInteger(Number(value)) ? undefined : `timestamp:${value}`
}

function readNumber(cursor: Cursor, { name, bytes, read }: NumberType): string | undefined {
  const value = read(cursor.table, cursor.at)
  cursor.at += bytes
  const number = Number(value)
  // The client library rounds it, so the type contains the exact value.
  if (typeof value === 'bigint' && !Number.isSafeInteger(number)) return `${name}:${value}`
  return name === chosenType(number) ? undefined : name
}

/**
 * Returns the type that the client library chooses for a number: the smallest integer, or a double. It chooses an
 * integer for `NaN`, too, and then cannot encode it.
 */
export function chosenType(value: number): string {
  const isFraction = Math.abs(value) < 2 ** 50 && !Number.isInteger(value)
  if (isFraction || value >= 2 ** 63) return 'double'
  if (value >= -128 && value < 128) return 'int8'
  if (value >= -32_768 && value < 32_768) return 'int16'
  return value >= -2_147_483_648 && value < 2_147_483_648 ? 'int32' : 'int64'
}

/** Returns the headers with the types, in the form that the client library encodes. */
export function withTypes(headers: Headers, types: HeaderTypes | undefined): Headers {
  return types === undefined ? headers : typedTable(headers, types)
}

const typedTable = (table: Headers, types: HeaderTypes): Headers =>
  Object.fromEntries(
    Object.entries(table).map(([name, value]) => [
      name,
      Object.hasOwn(types, name) ? typed(value, types[name]) : value,
    ]),
  )

function typed(value: unknown, type: HeaderType | null | undefined): unknown {
  if (type === null || type === undefined) return value
  if (typeof type === 'string') return typedNumber(value, type)
  if (Array.isArray(value))
    return isList(type) ? value.map((one, at) => typed(one, type[at])) : value
  const isTable = typeof value === 'object' && value !== null
  return isTable && !isList(type) ? typedTable(value as Headers, type) : value
}

const isList = (type: HeaderType): type is readonly (HeaderType | null)[] => Array.isArray(type)

/** Returns the number with its type, or the value unchanged when it is not the number that had the type. */
function typedNumber(value: unknown, type: string): unknown {
  const [name, exact] = type.split(':')
  const number = name === 'timestamp' ? tableAt(value)['value'] : value
  if (typeof number !== 'number') return value
  if (exact === undefined) return { '!': name, value: number }
  // As text: amqplib before 2.0.1 rounds it, and the others keep it.
  return Number(exact) === number ? { '!': name, value: exact } : value
}
