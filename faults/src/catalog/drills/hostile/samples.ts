import { createHash } from 'node:crypto'
import type { Kind } from '../../options.ts'

/** A message that is hard to store or to return. */
export interface Sample {
  readonly name: string
  /** Null is a tombstone. */
  readonly body: Buffer | null
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly contentType?: string
}

const MB = 1_000_000
const HUGE_BYTES = 100 * MB
/** Kafka accepts at most 1 MiB by default. */
const KAFKA_BYTES = 900_000
const DEPTH = 100_000
const HEADERS = 10_000

const deep = Buffer.from('['.repeat(DEPTH) + ']'.repeat(DEPTH))
const noText = Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x00, 0xc3, 0x28, 0x22, 0x7d])
/** A lone surrogate, as a JSON escape and as bytes that a UTF-8 decoder rejects. */
const surrogates = Buffer.concat([
  Buffer.from(String.raw`{"a":"\ud800","b":"\udfff\ud800","c":"`),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from('"}'),
])
const proto = Buffer.from('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}}}')

function huge(bytes: number): Buffer {
  const body = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at += 997) body[at] = at % 251
  return body
}

/**
 * Three letters each. A RabbitMQ client has 64 KiB for all headers, and Redrive's headers must fit
 * as well.
 */
const FIRST_NAME = 36 ** 2
const many = Array.from(
  { length: HEADERS },
  (_, at) => [(FIRST_NAME + at).toString(36), ''] as const,
)

export function samplesFor(kind: Kind): readonly Sample[] {
  const text = (name: string, body: Buffer): Sample => ({ name, body, headers: [] })
  return [
    {
      name: 'huge',
      body: huge(kind === 'kafka' ? KAFKA_BYTES : HUGE_BYTES),
      headers: [],
      contentType: 'application/octet-stream',
    },
    text('deep', deep),
    text('no text', noText),
    text('surrogates', surrogates),
    text('proto', proto),
    text('empty', Buffer.alloc(0)),
    {
      name: 'proto header',
      body: proto,
      headers: [
        ['__proto__', 'x'],
        ['constructor', 'y'],
        ['', 'z'],
      ],
    },
    { name: 'many headers', body: Buffer.from('{}'), headers: many },
    ...(kind === 'kafka' ? [{ name: 'tombstone', body: null, headers: [] }] : []),
  ]
}

export const hashOf = (bytes: Uint8Array | null): string =>
  bytes === null ? 'none' : createHash('sha256').update(bytes).digest('hex')

/** Returns the same hash for the same headers, in any order. */
export function headersHash(headers: Readonly<Record<string, unknown>>): string {
  const text = Object.keys(headers)
    .sort()
    .map((name) => {
      const value = headers[name]
      const shown =
        value instanceof Uint8Array ? Buffer.from(value).toString('hex') : JSON.stringify(value)
      return `${name}\n${shown}`
    })
  return hashOf(Buffer.from(text.join('\n\n')))
}
