import type { FailureRecord } from './delivery.ts'
import { FAILURE_CLASSES } from './failure.ts'
import { clip } from './text.ts'
import { isTraceparent } from './traceparent.ts'

/** 200 characters of the message of an error. The catalog contains the whole text of the last one. */
const MESSAGE_BOUND = 200

/** Returns one failure of the header `redrive-history` as JSON. Its table describes the fields. */
export function encodeRecord(one: FailureRecord): string {
  return asciiJson([
    one.number,
    one.at,
    one.class,
    one.signature,
    one.code ?? null,
    clip(one.message, MESSAGE_BOUND),
    one.type ?? null,
    Math.round(one.waitedMs),
    one.counted ? 1 : 0,
    ...(one.trace === undefined ? [] : [one.trace]),
  ])
}

/** Writes ASCII only: some brokers change other characters in header values, and others reject them. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Returns the failures of the header, or undefined when one of them cannot be read. */
export function parseRecords(header: string): readonly FailureRecord[] | undefined {
  const records = parseRows(header)?.map(readRecord)
  const readable = records?.filter((one) => one !== undefined)
  return readable?.length === records?.length ? readable : undefined
}

function parseRows(header: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(header)
    return Array.isArray(parsed) ? parsed.slice(1) : undefined
  } catch {
    return undefined
  }
}

/** Reads one failure. The last four fields are absent in messages of older releases, and the trace without tracing. */
function readRecord(row: unknown): FailureRecord | undefined {
  if (!Array.isArray(row)) return undefined
  const [
    number,
    at,
    name,
    signature,
    code,
    message,
    type = null,
    waitedMs = 0,
    counted = 1,
    trace,
  ] = row as readonly unknown[]
  const failureClass = FAILURE_CLASSES.find((one) => one === name)
  const isValid =
    typeof number === 'number' &&
    typeof at === 'number' &&
    failureClass !== undefined &&
    typeof signature === 'string' &&
    (typeof code === 'string' || code === null) &&
    typeof message === 'string' &&
    (typeof type === 'string' || type === null) &&
    typeof waitedMs === 'number'
  if (!isValid) return undefined
  return {
    number,
    at,
    waitedMs,
    class: failureClass,
    signature,
    code: code ?? undefined,
    type: type ?? undefined,
    message,
    counted: counted !== 0,
    ...(isTraceparent(trace) ? { trace } : {}),
  }
}
