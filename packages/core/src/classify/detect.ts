import { isRedriveError } from '../errors.ts'
import type { FailureClass } from '../failure.ts'
import {
  AWS_CODES,
  CODES,
  GRPC_STATUSES,
  HTTP_STATUSES,
  MESSAGES,
  REDRIVE_CODES,
  type Ruling,
  SQLSTATES,
} from './codes.ts'
import { statusOf } from './http.ts'
import { attempt, isA, read, readString } from './read.ts'
import { clip } from '../text.ts'
import { readIssues } from './text.ts'

export interface Verdict {
  readonly class: FailureClass
  readonly code: string | undefined
  readonly timedOut: boolean
}

type Detector = (error: unknown) => Verdict | undefined

/** Codes are identifiers. A longer text is not a code. */
const CODE_MAX = 100

/**
 * The first detector with a result wins, so the most specific ones come first. AWS sends throttling with
 * status 400, and a status (the request was answered) is more exact than the client's own code.
 */
const DETECTORS: readonly Detector[] = [
  redriveError,
  postgresError,
  grpcError,
  awsError,
  httpError,
  codedError,
  wordedError,
  schemaError,
  jsonError,
  abortedError,
]

/** Classifies one value without its causes. Returns class `unknown` when no detector recognises it. */
export function detect(error: unknown): Verdict {
  for (const detector of DETECTORS) {
    const verdict = detector(error)
    if (verdict !== undefined) return verdict
  }
  return toVerdict('unknown', codeOf(error))
}

function toVerdict(ruling: Ruling, code: string | undefined): Verdict {
  const timedOut = ruling === 'timeout'
  return { class: timedOut ? 'transient' : ruling, code, timedOut }
}

function codeOf(error: unknown): string | undefined {
  const code = readString(error, 'code')
  return code === undefined || code === '' ? undefined : clip(code, CODE_MAX)
}

function redriveError(error: unknown): Verdict | undefined {
  const code = codeOf(error)
  if (code === undefined || attempt(() => isRedriveError(error)) !== true) return undefined
  return toVerdict(REDRIVE_CODES.get(code) ?? 'unknown', code)
}

/** Severity is a mandatory field of a Postgres error. It distinguishes `23505` from other five-letter codes such as EPIPE. */
function postgresError(error: unknown): Verdict | undefined {
  const state = codeOf(error)
  if (state === undefined || !/^[0-9A-Z]{5}$/.test(state)) return undefined
  const server = readString(error, 'severity') ?? readString(error, 'routine')
  if (server === undefined) return undefined
  const ruling = SQLSTATES.get(state) ?? SQLSTATES.get(state.slice(0, 2)) ?? 'unknown'
  return toVerdict(ruling, `SQLSTATE ${state}`)
}

function grpcError(error: unknown): Verdict | undefined {
  const code = read(error, 'code')
  if (typeof code !== 'number' || readString(error, 'details') === undefined) return undefined
  const status = GRPC_STATUSES[code]
  if (status === undefined || read(error, 'metadata') === undefined) return undefined
  return toVerdict(status[1], `GRPC ${status[0]}`)
}

/** Version 3 of the SDK puts the service's code in `name`, version 2 in `code`; some protocols use `Code`. */
function awsError(error: unknown): Verdict | undefined {
  if (read(error, '$metadata') === undefined) return undefined
  const codes = ['name', 'code', 'Code'].map((key) => readString(error, key) ?? '')
  const known = codes.find((code) => AWS_CODES.has(code))
  if (known !== undefined) return toVerdict(AWS_CODES.get(known) ?? 'unknown', known)
  const retryable = read(error, '$retryable') !== undefined
  return retryable ? toVerdict('transient', clip(codes[0] ?? '', CODE_MAX)) : undefined
}

function httpError(error: unknown): Verdict | undefined {
  const status = statusOf(error)
  if (status === undefined) return undefined
  const row = HTTP_STATUSES.find(([min, max]) => status >= min && status <= max)
  return row && toVerdict(row[2], `HTTP ${status}`)
}

function codedError(error: unknown): Verdict | undefined {
  const code = codeOf(error)
  const ruling = code === undefined ? undefined : CODES.get(code)
  return ruling && toVerdict(ruling, code)
}

function wordedError(error: unknown): Verdict | undefined {
  const ruling = isA(error, Error) ? MESSAGES.get(readString(error, 'message') ?? '') : undefined
  return ruling && toVerdict(ruling, codeOf(error))
}

function schemaError(error: unknown): Verdict | undefined {
  return readIssues(error).length > 0 ? toVerdict('schema', codeOf(error)) : undefined
}

/**
 * JSON errors are recognised by their message, because V8 gives them no code. A SyntaxError can also
 * come from `new Function` or a dynamic import, and those are unrelated to a payload.
 * https://chromium.googlesource.com/v8/v8/+/main/src/common/message-template.h (kJsonParse…)
 */
const JSON_MESSAGE =
  /^Unexpected end of JSON input$| in JSON at position \d| after JSON at position \d| is not valid JSON$/

/** `response.json()` parses in these files. The unreadable text is then a dependency's response, often a proxy's HTML page. */
const RESPONSE_PARSER = /[ (/]node:internal\/deps\/undici\/|[\\/]node_modules[\\/]undici[\\/]/

/** Enough for every message of V8 (it quotes at most 40 characters of the text) and a few frames. */
const JSON_LOOK_MAX = 1000

function jsonError(error: unknown): Verdict | undefined {
  if (!isA(error, SyntaxError)) return undefined
  const message = clip(readString(error, 'message') ?? '', JSON_LOOK_MAX)
  if (!JSON_MESSAGE.test(message)) return undefined
  const stack = clip(readString(error, 'stack') ?? '', JSON_LOOK_MAX)
  return toVerdict(RESPONSE_PARSER.test(stack) ? 'unknown' : 'schema', 'INVALID_JSON')
}

/**
 * The only error names that decide. The platform gives these two errors no other mark that wrappers
 * keep: a DOMException's numeric code is legacy, and libraries that imitate it omit it.
 */
const ABORTS: ReadonlyMap<string, readonly [Ruling, code: string]> = new Map([
  ['AbortError', ['transient', 'ABORT_ERR']],
  ['TimeoutError', ['timeout', 'TIMEOUT_ERR']],
])

function abortedError(error: unknown): Verdict | undefined {
  const row = ABORTS.get(readString(error, 'name') ?? '')
  return row && toVerdict(row[0], codeOf(error) ?? row[1])
}
