import { FAILURE_CLASSES, FIRST_CYCLE, RedriveError } from '@redrive/core'
import type { StoredDeadLetter } from './ports/dead-letter-store.ts'
import type { OutboundEvent } from './ports/sink.ts'

/** The version at the start of every line or entry of a store. A later version may add fields. */
const VERSION = 1

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Serializes a dead letter as one line of readable text. The bytes are restored exactly. */
export function serializeStoredDeadLetter({ event, ...rest }: StoredDeadLetter): string {
  const { bytes, ...fields } = event
  return JSON.stringify({ v: VERSION, ...rest, event: { ...fields, ...writeBody(bytes) } })
}

/** Writes valid text as text, so that it can be searched; other bytes as base64. */
function writeBody(bytes: Uint8Array): { readonly body: string } | { readonly base64: string } {
  try {
    const body = utf8.decode(bytes)
    // A lone surrogate or a character that JSON would write differently must not change the bytes.
    if (body.isWellFormed()) return { body }
  } catch {
    // Not text.
  }
  return { base64: Buffer.from(bytes).toString('base64') }
}

/** Parses a stored dead letter. Throws for other content or an unknown version: a damaged line, or data of another program. */
export function parseStoredDeadLetter(text: string): StoredDeadLetter {
  const read = parse(text)
  const { event, failure, cycle } = read
  if (
    read['v'] !== VERSION ||
    !isRecord(event) ||
    !isRecord(failure) ||
    !isRecord(cycle) ||
    !FAILURE_CLASSES.some((one) => one === failure['class'])
  ) {
    throw unreadable(text)
  }
  const { body, base64, ...fields } = event
  const isText = typeof body === 'string'
  const bytes = Buffer.from(isText ? body : String(base64), isText ? 'utf8' : 'base64')
  const { v: _, ...rest } = read
  return {
    job: undefined,
    ...rest,
    // Undefined fields are not written, and absent fields mean the same.
    failure: { code: undefined, retryAfterMs: undefined, stack: undefined, ...failure },
    cycle: { ...FIRST_CYCLE, ...cycle, history: readHistory(cycle['history']) },
    event: { lane: undefined, ...fields, bytes } as unknown as OutboundEvent,
  } as unknown as StoredDeadLetter
}

/** The values of fields that are undefined, or that an older release did not write. */
const ABSENT = { code: undefined, type: undefined, waitedMs: 0, counted: true }

const readHistory = (history: unknown): readonly unknown[] =>
  Array.isArray(history) ? history.map((record: object) => ({ ...ABSENT, ...record })) : []

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

function parse(text: string): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(text)
    if (isRecord(read)) return read
  } catch (cause) {
    throw unreadable(text, cause)
  }
  throw unreadable(text)
}

const unreadable = (text: string, cause?: unknown) =>
  new RedriveError(
    'PAYLOAD_INVALID',
    `The store contains an entry that is damaged or has an unknown version: "${text.slice(0, 80)}". Remove it, or read it with the version of Redrive that wrote it.`,
    cause === undefined ? {} : { cause },
  )
