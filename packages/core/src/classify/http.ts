import { PUSHBACK_MAX_MS } from '../defaults.ts'
import { hasAny, type Names } from './names.ts'
import { attempt, firstNames, read, readItems, readPath } from './read.ts'

/** Paths used by fetch wrappers, http-errors and undici; axios, got and superagent; the AWS SDK. */
const STATUS_PATHS: readonly (readonly string[])[] = [
  ['status'],
  ['statusCode'],
  ['response', 'status'],
  ['response', 'statusCode'],
  ['$metadata', 'httpStatusCode'],
]

/** An error with a status has one of these. */
export const STATUS_NAMES: readonly string[] = firstNames(STATUS_PATHS)

/** Most clients keep the response. undici and a thrown Response have the headers directly. */
const HEADERS_PATHS: readonly (readonly string[])[] = [
  ['response', 'headers'],
  ['headers'],
  ['$response', 'headers'],
]

/** An error with a wait time has one of these. */
const WAIT_NAMES: readonly string[] = ['retryAfterMs', ...firstNames(HEADERS_PATHS)]

/** Maximum length: a Retry-After header is ten digits or a date of 29 characters. */
const HEADER_MAX = 64

/** Returns the HTTP status of an error, under any of the usual names. */
export function statusOf(error: unknown): number | undefined {
  return STATUS_PATHS.map((path) => toStatus(readPath(error, path))).find(isPresent)
}

function toStatus(value: unknown): number | undefined {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
  if (typeof status !== 'number' || !Number.isInteger(status)) return undefined
  return status >= 100 && status <= 599 ? status : undefined
}

/** Returns the wait time that the dependency requested, in milliseconds. */
export function retryAfterOf(error: unknown, names: Names, now: number): number | undefined {
  if (!hasAny(names, WAIT_NAMES)) return undefined
  const requestedMs = read(error, 'retryAfterMs')
  const waits = HEADERS_PATHS.map((path) => headersWaitMs(readPath(error, path), now))
  const waitMs = [typeof requestedMs === 'number' ? requestedMs : undefined, ...waits].find(isWait)
  return waitMs === undefined ? undefined : Math.min(waitMs, PUSHBACK_MAX_MS)
}

/** OpenAI also sends the wait in milliseconds, which is more exact. */
function headersWaitMs(headers: unknown, now: number): number | undefined {
  const exactMs = toNumber(headerOf(headers, 'retry-after-ms', 'Retry-After-Ms'))
  return exactMs ?? toWaitMs(headerOf(headers, 'retry-after', 'Retry-After'), now)
}

function headerOf(headers: unknown, name: string, titled: string): unknown {
  const get = read(headers, 'get')
  const value =
    typeof get === 'function'
      ? attempt((): unknown => get.call(headers, name))
      : (read(headers, name) ?? read(headers, titled))
  return readItems(value, 1)[0] ?? value
}

/** Reads seconds or an HTTP date. A date without GMT is not an HTTP date; it would be read as local time. */
function toWaitMs(header: unknown, now: number): number | undefined {
  const seconds = toNumber(header)
  if (seconds !== undefined) return seconds * 1000
  if (typeof header !== 'string' || header.length > HEADER_MAX) return undefined
  const text = header.trim()
  return text.endsWith(' GMT') ? Math.max(0, Date.parse(text) - now) : undefined
}

function toNumber(header: unknown): number | undefined {
  if (typeof header === 'number') return header
  if (typeof header !== 'string' || header.length > HEADER_MAX) return undefined
  const text = header.trim()
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined
}

function isPresent(value: number | undefined): value is number {
  return value !== undefined
}

function isWait(value: number | undefined): value is number {
  return value !== undefined && value >= 0
}
