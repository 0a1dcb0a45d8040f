import type { ReportedFailure } from './reported-failure.ts'
import { isRecord } from './text.ts'

/** Headers in which services of any kind describe an error. Sources read them when no library is recognised. */
export interface ErrorHeaderTable {
  /** Text, table or JSON. The error: its message, or `message`, `name` and `stack`. */
  readonly 'x-error': unknown
  /** Text. Message of the error. */
  readonly 'x-error-message': unknown
  /** Text, table or JSON. The error, as in `x-error`. */
  readonly 'x-exception': unknown
  /** Text, table or JSON. The error, as in `x-error`. */
  readonly 'x-last-error': unknown
  /** Text. Message of the error. */
  readonly 'x-failure-reason': unknown
  /** Text, table or JSON. The error, as in `x-error`. */
  readonly error: unknown
  /** Text. Message of the error. */
  readonly 'error-message': unknown
  /** Text. Message of the error. */
  readonly errorMessage: unknown
  /** Text, table or JSON. The error, as in `x-error`. */
  readonly exception: unknown
  /** Text. Type of the error. */
  readonly 'x-error-type': unknown
  /** Text. Type of the error. */
  readonly 'x-exception-type': unknown
  /** Text. Type of the error. */
  readonly 'error-type': unknown
  /** Text. Stack trace of the error. */
  readonly 'x-error-stack': unknown
  /** Text. Stack trace of the error. */
  readonly 'x-stack-trace': unknown
  /** Text. Stack trace of the error. */
  readonly 'error-stack': unknown
  /** Whole number. Retries before the failure. */
  readonly 'x-retry-count': unknown
  /** Whole number. Retries before the failure. */
  readonly 'retry-count': unknown
}

type Name = keyof ErrorHeaderTable

/** In this order: the first header with a text wins. */
const ERRORS: readonly Name[] = [
  ...(['x-error-message', 'x-error', 'x-exception', 'x-last-error', 'x-failure-reason'] as const),
  ...(['error-message', 'errorMessage', 'error', 'exception'] as const),
]
const TYPES: readonly Name[] = ['x-error-type', 'x-exception-type', 'error-type']
const STACKS: readonly Name[] = ['x-error-stack', 'x-stack-trace', 'error-stack']
const RETRIES: readonly Name[] = ['x-retry-count', 'retry-count']

/** A longer text is not parsed. */
const JSON_MAX = 65_536

/** `TypeError: total is undefined`: the type before the message. */
const TYPED = /^((?:[\w$]{1,80}\.){0,20}[A-Z][\w$]{0,80}(?:Error|Exception)): /

/**
 * Returns the failure that error headers describe. `read` returns the value of a header. Returns undefined when no
 * header has an error.
 */
export function reportOfErrorHeaders(read: (name: Name) => unknown): ReportedFailure | undefined {
  const errors = ERRORS.map((name) => partsOf(read(name)))
  const message = firstText(errors.map((error) => error['message']))
  if (message === undefined) return undefined
  const types = [...TYPES.map(read), ...errors.flatMap((error) => [error['name'], error['type']])]
  const stacks = [...STACKS.map(read), ...errors.map((error) => error['stack'])]
  const type = firstText(types) ?? TYPED.exec(message)?.[1]
  const retries = RETRIES.map((name) => Number(read(name))).find(Number.isSafeInteger) ?? 0
  return {
    type,
    message,
    stack: firstText(stacks),
    at: undefined,
    attempts: 1 + Math.max(0, retries),
  }
}

/** Returns the parts of an error: of a table, of JSON, or of a text, which is its message. */
function partsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value
  if (typeof value !== 'string') return {}
  return parsed(value) ?? { message: value }
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{') || text.length > JSON_MAX) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) && typeof value['message'] === 'string' ? value : undefined
  } catch {
    // Not JSON: the text is the message.
    return undefined
  }
}

function firstText(values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value !== '')
}
