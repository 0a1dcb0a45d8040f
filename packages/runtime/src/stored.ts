import { FAILURE_CLASSES, FIRST_CYCLE, RedriveError } from '@redrive/core'
import type { OutboundEvent, StoredDeadLetter } from './ports.ts'

/** What every line or entry of a store says first: a later version may keep more. */
const VERSION = 1

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A dead letter as text, on one line: people read it, and it comes back byte for byte. */
export function writeStored({ event, ...rest }: StoredDeadLetter): string {
  const { bytes, ...told } = event
  return JSON.stringify({ v: VERSION, ...rest, event: { ...told, ...writeBody(bytes) } })
}

/** Text where it is text, so that it can be searched; else base64. */
function writeBody(bytes: Uint8Array): { readonly body: string } | { readonly base64: string } {
  try {
    const body = utf8.decode(bytes)
    // A lone surrogate or a character JSON would write otherwise must not change the bytes.
    if (body.isWellFormed()) return { body }
  } catch {
    // Not text.
  }
  return { base64: Buffer.from(bytes).toString('base64') }
}

/** Throws for what is not a dead letter of a version we know: a torn line, or somebody else's. */
export function readStored(text: string): StoredDeadLetter {
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
  const { body, base64, ...told } = event
  const isText = typeof body === 'string'
  const bytes = Buffer.from(isText ? body : String(base64), isText ? 'utf8' : 'base64')
  const { v: _, ...rest } = read
  return {
    job: undefined,
    ...rest,
    // What is undefined is not written; absent is the same.
    failure: { code: undefined, retryAfterMs: undefined, stack: undefined, ...failure },
    cycle: { ...FIRST_CYCLE, ...cycle, history: readHistory(cycle['history']) },
    event: { lane: undefined, ...told, bytes } as unknown as OutboundEvent,
  } as unknown as StoredDeadLetter
}

const readHistory = (history: unknown): readonly unknown[] =>
  Array.isArray(history) ? history.map((attempt: object) => ({ code: undefined, ...attempt })) : []

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
    `This is not a stored dead letter: ${text.slice(0, 80)}`,
    cause === undefined ? {} : { cause },
  )
