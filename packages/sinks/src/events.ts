import type { OutboundEvent } from '@redrive/runtime'
import type { EventHeaderTable } from './header-tables.ts'

export type Severity = 'debug' | 'info' | 'warning' | 'error' | 'fatal'

const SEVERITIES: ReadonlySet<string> = new Set(['debug', 'info', 'warning', 'error', 'fatal'])
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns the severity that the emitter set; info when it is absent or unknown. */
export function severityOf(event: OutboundEvent): Severity {
  const { severity = '' }: Partial<EventHeaderTable> = event.headers
  return SEVERITIES.has(severity) ? (severity as Severity) : 'info'
}

/** Headers that are credentials, or that sinks send in another form. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'severity' satisfies keyof EventHeaderTable,
  'authorization',
  'cookie',
  'proxy-authorization',
  'set-cookie',
])

/** Returns the headers of the application, without credentials and headers of Redrive. Names are in lower case. */
export function applicationHeaders({
  headers,
}: OutboundEvent): readonly (readonly [string, string])[] {
  return Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !OWN_HEADERS.has(name) && !name.startsWith('redrive-'))
}

/** Returns the body as text, or undefined when it is not text. */
export function textOf({ bytes }: OutboundEvent): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

export function base64Of({ bytes }: OutboundEvent): string {
  return bufferOf(bytes).toString('base64')
}

/** Returns a view of the same bytes, not a copy. */
export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Returns nanoseconds since 1970 as text, because a number is too small. */
export function nanosOf(ms: number): string {
  const whole = Math.floor(ms)
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)))
}

/** Returns valid JSON unchanged: numbers too large for JavaScript keep their digits. */
export function jsonOf(event: OutboundEvent): string | undefined {
  if (!/[/+]json\b/i.test(event.contentType)) return undefined
  const text = textOf(event)
  if (text === undefined || !isJson(text)) return undefined
  // Outside of strings a line break is only white space, and JSON does not allow one inside.
  return text.replaceAll(/[\r\n]+/g, ' ').trim()
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Writes one event as one line of JSON. A JSON body is part of it, other text is a string, other bytes are base64. */
export function lineOf(event: OutboundEvent): string {
  const { at, type, id, key, lane, contentType, headers } = event
  const head = JSON.stringify({
    time: new Date(at).toISOString(),
    severity: severityOf(event),
    type,
    id,
    ...(key !== id && { key }),
    lane,
    contentType,
    headers,
  })
  const body = bodyOf(event)
  return `${head.slice(0, -1)},"${body.member}":${body.json}}\n`
}

/** Writes only the body of an event as one line of JSON. */
export function bodyLineOf(event: OutboundEvent): string {
  return `${bodyOf(event).json}\n`
}

function bodyOf(event: OutboundEvent): { readonly member: string; readonly json: string } {
  const json = jsonOf(event)
  if (json !== undefined) return { member: 'body', json }
  const text = textOf(event)
  if (text !== undefined) return { member: 'body', json: JSON.stringify(text) }
  return { member: 'base64', json: JSON.stringify(base64Of(event)) }
}
