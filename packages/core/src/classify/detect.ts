import { isRedriveError } from '../errors.ts'
import {
  AWS_CODES,
  CODES,
  GRPC_STATUSES,
  HTTP_STATUSES,
  MESSAGE_STARTS,
  MESSAGES,
  REDRIVE_CODES,
  type Ruling,
  SQLSTATES,
} from './codes.ts'
import { CLIENT_CODES, NAMES } from './clients.ts'
import { amqpError, kafkaError, mongoError, prismaError, redisError } from './detect-clients.ts'
import { retryAfterOf, STATUS_NAMES, statusOf } from './http.ts'
import { hasAny, type Names } from './names.ts'
import { attempt, isA, read, readItems, readString, readText } from './read.ts'
import { clip } from '../text.ts'
import { readIssues, typeOf } from './text.ts'
import { CODE_MAX, codeOf, type Detector, toVerdict, type Verdict } from './verdict.ts'

/**
 * The first detector with a result wins, so the most specific ones come first. AWS sends throttling with
 * status 400, and a status (the request was answered) is more exact than the client's own code.
 */
const DETECTORS: readonly (readonly [needsOneOf: readonly string[], detector: Detector])[] = [
  [['code', 'errorCode'], redriveError],
  [['code', 'errorCode'], clientError],
  [['code', 'originalCode', 'sqlState'], sqlError],
  [['cause'], prismaError],
  [['code', 'errorLabels'], mongoError],
  [['classId'], amqpError],
  [['type'], kafkaError],
  [['message'], redisError],
  [['details'], grpcError],
  [['$metadata'], awsError],
  [STATUS_NAMES, httpError],
  [['code', 'errorCode'], codedError],
  [['message'], wordedError],
  [['issues'], schemaError],
  [['message'], jsonError],
  [['name'], abortedError],
]

/**
 * Classifies one value without its causes. Returns class `unknown` when no detector recognises it. A date in a header is
 * compared with `now`.
 */
export function detect(error: unknown, names: Names, now: number): Verdict {
  for (const [needsOneOf, detector] of DETECTORS) {
    const verdict = hasAny(names, needsOneOf) ? detector(error, names, now) : undefined
    if (verdict !== undefined) return verdict
  }
  return toVerdict('unknown', codeOf(error))
}

/** Classifies an error by its name. A name is weaker evidence than a code, also than the code of a cause. */
export function detectByName(error: unknown): Verdict | undefined {
  const name = typeOf(error)
  const ruling = NAMES.get(name)
  return ruling && toVerdict(ruling, codeOf(error) ?? name)
}

function redriveError(error: unknown): Verdict | undefined {
  const code = codeOf(error)
  if (code === undefined || attempt(() => isRedriveError(error)) !== true) return undefined
  return toVerdict(REDRIVE_CODES.get(code) ?? 'unknown', code)
}

function clientError(error: unknown): Verdict | undefined {
  const code = codeOf(error)
  const ruling = code === undefined ? undefined : CLIENT_CODES.get(code)
  return ruling && toVerdict(ruling, code)
}

/**
 * The property with the SQLSTATE, and one that must be next to it. It distinguishes `23505` from other five-letter
 * codes such as EPIPE. pg: severity is a mandatory field of a server's error. Prisma's adapters: the kind. mysql2: the
 * message of the server.
 */
const SQLSTATE_PROPERTIES: readonly (readonly [state: string, mark: string])[] = [
  ['code', 'severity'],
  ['code', 'routine'],
  ['originalCode', 'kind'],
  ['sqlState', 'sqlMessage'],
]

function sqlError(error: unknown): Verdict | undefined {
  for (const [property, mark] of SQLSTATE_PROPERTIES) {
    const state = readString(error, property)
    if (state === undefined || !/^[0-9A-Z]{5}$/.test(state)) continue
    if (readString(error, mark) === undefined) continue
    const ruling = SQLSTATES.get(state) ?? SQLSTATES.get(state.slice(0, 2)) ?? 'unknown'
    // MySQL has a name for each error, which is more exact.
    const name = property === 'code' ? undefined : codeOf(error)
    return toVerdict(ruling, name ?? `SQLSTATE ${state}`)
  }
  return undefined
}

function grpcError(error: unknown): Verdict | undefined {
  const code = read(error, 'code')
  if (typeof code !== 'number' || readString(error, 'details') === undefined) return undefined
  const status = GRPC_STATUSES[code]
  if (status === undefined || read(error, 'metadata') === undefined) return undefined
  return toVerdict(status[1], `GRPC ${status[0]}`)
}

/** DynamoDB writes at most 100 items in a transaction, and a cancelled one has a reason for each. */
const REASONS_MAX = 100

/** Version 3 of the SDK puts the service's code in `name`, version 2 in `code`; some protocols use `Code`. */
function awsError(error: unknown): Verdict | undefined {
  if (read(error, '$metadata') === undefined) return undefined
  const own = ['name', 'code', 'Code'].map((key) => readText(error, key))
  const reasons = readItems(read(error, 'CancellationReasons'), REASONS_MAX)
  const codes = [...own, ...reasons.map((reason) => readText(reason, 'Code'))]
  const known = codes.find((code) => AWS_CODES.has(code))
  if (known !== undefined) return toVerdict(AWS_CODES.get(known) ?? 'unknown', known)
  const retryable = read(error, '$retryable') !== undefined
  return retryable ? toVerdict('transient', clip(codes[0] ?? '', CODE_MAX)) : undefined
}

function httpError(error: unknown, names: Names, now: number): Verdict | undefined {
  const status = statusOf(error)
  if (status === undefined) return undefined
  const row = HTTP_STATUSES.find(([min, max]) => status >= min && status <= max)
  if (row === undefined) return undefined
  // A service that requests a wait accepts the request later: GitHub sends 403 for a rate limit, others 413 or 423.
  // Also without a wait: services round half a second down to 0, and with other clocks a date has already passed.
  const isLater = row[2] === 'integration' && retryAfterOf(error, names, now) !== undefined
  return toVerdict(isLater ? 'transient' : row[2], `HTTP ${status}`)
}

function codedError(error: unknown): Verdict | undefined {
  const code = codeOf(error)
  const ruling = code === undefined ? undefined : CODES.get(code)
  return ruling && toVerdict(ruling, code)
}

function wordedError(error: unknown): Verdict | undefined {
  if (!isA(error, Error)) return undefined
  const message = readText(error, 'message')
  const ruling =
    MESSAGES.get(message) ?? MESSAGE_STARTS.find(([start]) => message.startsWith(start))?.[1]
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

/**
 * The parser was called by Node's `response.json()` or by a package, such as an HTTP client. The unreadable text is then
 * a dependency's response, often a proxy's HTML page. The payload of a message is parsed by Redrive or by the handler.
 */
const RESPONSE_PARSER =
  /[ (/]node:internal\/deps\/undici\/|\n\s{0,9}at (?:\w{1,20}\.)?parse \(<anonymous>\)\n[^\n]{0,500}[\\/]node_modules[\\/]/

/** Enough for every message of V8 (it quotes at most 40 characters of the text) and a few frames. */
const JSON_LOOK_MAX = 1000

function jsonError(error: unknown): Verdict | undefined {
  if (!isA(error, SyntaxError)) return undefined
  const message = clip(readText(error, 'message'), JSON_LOOK_MAX)
  if (!JSON_MESSAGE.test(message)) return undefined
  const stack = clip(readText(error, 'stack'), JSON_LOOK_MAX)
  return toVerdict(RESPONSE_PARSER.test(stack) ? 'unknown' : 'schema', 'INVALID_JSON')
}

/**
 * Names of aborts and timeouts. The platform gives these two errors no other mark that wrappers
 * keep: a DOMException's numeric code is legacy, and libraries that imitate it omit it.
 */
const ABORTS: ReadonlyMap<string, readonly [Ruling, code: string]> = new Map([
  ['AbortError', ['transient', 'ABORT_ERR']],
  ['TimeoutError', ['timeout', 'TIMEOUT_ERR']],
])

function abortedError(error: unknown): Verdict | undefined {
  const row = ABORTS.get(readText(error, 'name'))
  return row && toVerdict(row[0], codeOf(error) ?? row[1])
}
