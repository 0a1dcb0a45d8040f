import { type FailureCycle, type FailureRecord, FIRST_CYCLE } from './delivery.ts'
import { encodeRecord, parseRecords } from './header-history.ts'
import { isTraceparent } from './traceparent.ts'
import type { RedriveHeaderTable } from './header-table.ts'
import { clip, shown } from './text.ts'

/**
 * The header format of Redrive's data about a message. Text headers with the prefix `redrive-`, because
 * text survives every broker and tool. The format is versioned and bounded. A header that cannot be
 * read is reported and counts as absent; it never causes an error.
 */
export const HEADER_PREFIX = 'redrive-'
const VERSION = '1'

/** Headers by name; the compiler rejects a name that is not in the table. */
type RedriveHeaders = { -readonly [Name in keyof RedriveHeaderTable]?: string }

/** 8 KiB: fits next to a producer's own headers on every broker (NATS with 4 KiB and SQS have their own, smaller budget). */
export const HEADER_BUDGET_BYTES = 8_192
const COUNT_BOUND = 1_000_000
/** 255 characters: more than the name of a function needs. */
const HANDLER_BOUND = 255

/** All data that Redrive writes on a message. */
export interface WireState {
  readonly id: string
  readonly key: string
  /** The source the message first came from. A replay publishes it there. */
  readonly source: string
  readonly replayId: string | undefined
  /** The key of the original message that this one replaces. */
  readonly replaces?: string | undefined
  readonly cycle: FailureCycle
  /** The reason of the failure that led to a dead letter or quarantine. */
  readonly reason: string | undefined
  /** Name of the handler of a dead letter. */
  readonly handler?: string | undefined
  /** Its stack, when the policy includes it. Omitted where it does not fit. */
  readonly stack?: string | undefined
}

export interface EncodedHeaders {
  readonly headers: Readonly<Record<string, string>>
  /** Number of failures omitted so that the rest fits the budget. */
  readonly truncated: number
}

/** Returns the headers for a copy of the message. Over budget, it drops the oldest failures and records how many. */
export function encodeHeaders(
  state: WireState,
  budgetBytes: number = HEADER_BUDGET_BYTES,
): EncodedHeaders {
  const { headers, truncated } = withHistory(fixedHeaders(state), state.cycle.history, budgetBytes)
  if (state.stack === undefined) return { headers, truncated }
  const stack: RedriveHeaders = { 'redrive-stack': headerText(state.stack) }
  const fits = sizeOf(headers) + sizeOf(stack) <= budgetBytes
  return { headers: fits ? { ...headers, ...stack } : headers, truncated }
}

/** Keeps the newest failures that fit. Each is encoded once, because a long history must not block the loop. */
function withHistory(
  fixed: Readonly<Record<string, string>>,
  history: readonly FailureRecord[],
  budgetBytes: number,
): EncodedHeaders {
  if (history.length === 0) return { headers: fixed, truncated: 0 }
  const rows = history.map(encodeRecord)
  const room = budgetBytes - sizeOf(fixed) - HISTORY.length
  for (let dropped = 0, size = joined(rows).length; dropped <= rows.length; dropped++) {
    if (size + String(dropped).length <= room) {
      const text = `[${[dropped, ...rows.slice(dropped)].join(',')}]`
      return { headers: { ...fixed, [HISTORY]: text }, truncated: dropped }
    }
    size -= (rows[dropped]?.length ?? 0) + 1
  }
  return { headers: fixed, truncated: history.length }
}

const HISTORY = 'redrive-history' satisfies keyof RedriveHeaderTable

/** Joins everything except the leading number of dropped failures. */
const joined = (rows: readonly string[]) => `[${rows.map((row) => `,${row}`).join('')}]`

function fixedHeaders({
  id,
  key,
  source,
  replayId,
  replaces,
  cycle,
  reason,
  handler,
}: WireState): RedriveHeaders {
  const last = cycle.history.at(-1)
  const headers: RedriveHeaders = {
    'redrive-version': VERSION,
    // Never shortened: two messages must not get the same id.
    'redrive-id': headerText(id),
    'redrive-source': headerText(source),
    'redrive-attempt': String(cycle.attempts),
  }
  // Only fields with information: each header is encoded, stored and decoded with every hand-off.
  if (key !== id) headers['redrive-key'] = headerText(key)
  if (cycle.runs !== cycle.attempts) headers['redrive-runs'] = String(cycle.runs)
  if (cycle.unproven.runs !== 0) {
    headers['redrive-unproven-runs'] = String(cycle.unproven.runs)
    headers['redrive-unproven-ms'] = whole(cycle.unproven.waitedMs)
  }
  if (cycle.number !== 1) headers['redrive-cycle'] = String(cycle.number)
  if (cycle.firstFailedAt !== undefined) {
    headers['redrive-first-failed-at'] = whole(cycle.firstFailedAt)
  }
  if (cycle.lastDelayMs !== 0) headers['redrive-delay'] = String(cycle.lastDelayMs)
  if (cycle.remainingMs !== 0) headers['redrive-remaining'] = String(Math.ceil(cycle.remainingMs))
  if (cycle.trace !== undefined) headers['redrive-trace'] = headerText(cycle.trace)
  if (last !== undefined) {
    headers['redrive-class'] = last.class
    headers['redrive-signature'] = headerText(last.signature)
  }
  if (reason) headers['redrive-reason'] = headerText(reason)
  if (handler) headers['redrive-handler'] = headerText(clip(handler, HANDLER_BOUND))
  if (replayId) headers['redrive-replay-id'] = headerText(replayId)
  if (replaces !== undefined) headers['redrive-replaces'] = headerText(replaces)
  return headers
}

const whole = (value: number) => String(Math.round(value))

/** Encodes text for a Redrive header. Percent-encodes everything but printable ASCII: some brokers change other bytes, and a line break could forge a header. */
export function headerText(value: string): string {
  return value.replace(/[^\x20-\x24\x26-\x7e]/gu, (char) =>
    isLoneSurrogate(char) ? '%EF%BF%BD' : encodeURIComponent(char),
  )
}

const isLoneSurrogate = (char: string) => char >= '\ud800' && char <= '\udfff' && char.length === 1

function plain(value: string | undefined): string | undefined {
  if (value === undefined || !value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** Returns the size in bytes. All text is ASCII, so it counts characters. */
function sizeOf(headers: Readonly<Record<string, string>>): number {
  let size = 0
  for (const name of Object.keys(headers)) size += name.length + (headers[name]?.length ?? 0)
  return size
}

export interface DecodedHeaders {
  readonly id: string | undefined
  readonly key: string | undefined
  readonly source: string | undefined
  readonly replayId: string | undefined
  readonly replaces?: string
  readonly cycle: FailureCycle
  readonly reason: string | undefined
  readonly handler?: string
  readonly stack?: string
  /** The producer's own headers. */
  readonly foreign: Readonly<Record<string, unknown>>
  /** Headers that could not be read, one sentence each. When not empty, the message counts as a first attempt. */
  readonly problems: readonly string[]
}

/** Reads headers of any origin: missing, foreign, damaged, or written by a newer version. Never throws. */
export function decodeHeaders(raw: Readonly<Record<string, unknown>>): DecodedHeaders {
  // No prototype, because a producer may name a header `__proto__`.
  const own = Object.create(null) as Record<string, string>
  const known: RedriveHeaders = own
  const foreign = Object.create(null) as Record<string, unknown>
  const problems: string[] = []
  for (const [name, value] of Object.entries(raw)) {
    if (!name.startsWith(HEADER_PREFIX)) foreign[name] = value
    else if (typeof value === 'string') own[name] = value
    else problems.push(`${name}: expected text, got ${typeof value}`)
  }
  const cycle = readCycle(known, problems)
  const stack = plain(known['redrive-stack'])
  const replaces = plain(known['redrive-replaces'])
  const handler = plain(known['redrive-handler'])
  return {
    ...(handler === undefined ? {} : { handler }),
    ...(stack === undefined ? {} : { stack }),
    ...(replaces === undefined ? {} : { replaces }),
    id: plain(known['redrive-id']),
    key: plain(known['redrive-key']),
    source: plain(known['redrive-source']),
    replayId: plain(known['redrive-replay-id']),
    reason: plain(known['redrive-reason']),
    cycle: problems.length === 0 ? cycle : { ...FIRST_CYCLE, number: cycle.number },
    foreign,
    problems,
  }
}

function readCycle(own: RedriveHeaders, problems: string[]): FailureCycle {
  if (own['redrive-version'] === undefined) return FIRST_CYCLE
  if (own['redrive-version'] !== VERSION) {
    problems.push(
      `redrive-version: ${shown(own['redrive-version'])} is not supported by this release`,
    )
  }
  const attempts = readCount(own, 'redrive-attempt', 0, problems)
  const trace = own['redrive-trace']
  return {
    number: Math.max(1, readCount(own, 'redrive-cycle', 1, problems)),
    attempts,
    runs: Math.max(attempts, readCount(own, 'redrive-runs', attempts, problems)),
    unproven: {
      runs: readCount(own, 'redrive-unproven-runs', 0, problems),
      waitedMs: readTime(own, 'redrive-unproven-ms', problems) ?? 0,
    },
    firstFailedAt: readTime(own, 'redrive-first-failed-at', problems),
    lastDelayMs: readTime(own, 'redrive-delay', problems) ?? 0,
    remainingMs: readTime(own, 'redrive-remaining', problems) ?? 0,
    history: readHistory(own['redrive-history'], problems),
    ...(isTraceparent(trace) ? { trace } : {}),
  }
}

function readCount(
  own: RedriveHeaders,
  name: keyof RedriveHeaders,
  fallback: number,
  problems: string[],
): number {
  const value = readTime(own, name, problems)
  if (value === undefined) return fallback
  if (value <= COUNT_BOUND) return value
  problems.push(`${name}: ${value} is out of range`)
  return fallback
}

function readTime(
  own: RedriveHeaders,
  name: keyof RedriveHeaders,
  problems: string[],
): number | undefined {
  const value = own[name]
  if (value === undefined) return undefined
  if (/^\d{1,15}$/.test(value)) return Number(value)
  problems.push(`${name}: expected a whole number`)
  return undefined
}

function readHistory(value: string | undefined, problems: string[]): readonly FailureRecord[] {
  if (value === undefined) return []
  const records = parseRecords(value)
  if (records === undefined) problems.push('redrive-history: cannot be parsed')
  return records ?? []
}
