import { type Check, isRecord, named, readOptions, withMethods } from '@redrive/core/internal'

/** The conditions of the values that several calls of the runtime take. */

/** A Standard Schema is an object or a function: arktype's schemas are functions. */
export const SCHEMA: Check = {
  isValid: (value) => typeof validateOf(value) === 'function',
  expected: 'a Standard Schema, such as one of zod, valibot or arktype',
}

function validateOf(value: unknown): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  return (value as { readonly '~standard'?: { readonly validate?: unknown } })['~standard']
    ?.validate
}

/** The condition of a name that people read in logs. */
export function visibleName(expected: string): Check {
  const name = named(expected)
  return { ...name, isValid: (value) => name.isValid(value) && String(value).trim() !== '' }
}

export const CLOCK: Check = withMethods('a clock with now() and after()', ['now', 'after'])

const WITH_LINES = withMethods(
  "'off', or a logger with warn() and error() such as console or pino",
  ['warn', 'error'],
)

export const LOGGER: Check = {
  ...WITH_LINES,
  isValid: (value) => value === 'off' || WITH_LINES.isValid(value),
}

export const SINK: Check = withMethods("a sink such as loki({ url: 'http://loki:3100' })", [
  'send',
  'close',
])

export const STORE: Check = withMethods(
  "a dead-letter store such as fileStore({ directory: 'dead-letters' })",
  ['save', 'close'],
)

export const INBOX: Check = withMethods('an inbox such as postgresInbox({ pool })', ['handle'])

/** The condition of the limit of an inbox. */
export const MAX_CONCURRENCY: Check = {
  isValid: (value) =>
    value === undefined ||
    value === Number.POSITIVE_INFINITY ||
    (Number.isInteger(value) && Number(value) >= 1),
  expected: 'a whole number of at least 1',
}

export const TRANSPORT: Check = withMethods(
  "a transport such as rabbitmq({ url: 'amqp://localhost', queue: 'orders' })",
  ['open', 'receive', 'enact', 'limit', 'pause', 'resume', 'close'],
)

/** Returns the milliseconds of `drain` in the options of a call that ends a consumer or an emitter. */
export function readDrain(call: string, options: unknown, fallbackMs: number): number {
  // `process.once('SIGTERM', consumer.stop)` and other callbacks pass what they like. The consumer must stop then.
  const given = isRecord(options) && isPlain(options) ? options : undefined
  return readOptions(call, given, (top) => top.duration('drain', fallbackMs))
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
