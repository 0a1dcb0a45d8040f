import type { Input } from '@redrive/api'
import { type Duration, parseDuration } from '@redrive/core'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

export type Query = NonNullable<Input<'listDeadLetters'>['query']>
type Selection = Input<'planReplay'>['body']['selection']
type Selected = Extract<Selection, { readonly query: unknown }>['query']

/** The flags that select dead letters. */
export interface FilterOptions {
  readonly group?: readonly string[]
  readonly source?: readonly string[]
  readonly handler?: string
  readonly class?: string
  readonly code?: string
  readonly type?: string
  readonly key?: string
  readonly text?: string
  readonly quarantined?: boolean
  /** A time, or how long ago. */
  readonly after?: string
  readonly before?: string
  /** `name=value`. */
  readonly header?: readonly string[]
  readonly extracted?: readonly string[]
  /** `/pointer=value`. */
  readonly body?: readonly string[]
}

/** Returns the flags as a query of the API. `groups` are full ids. */
export function queryOf(io: Io, options: FilterOptions, groups: readonly string[]): Query {
  const { header, extracted, body } = options
  return defined({
    ...commonOf(io, options, groups),
    headers: header,
    extracted,
    json: body,
  }) as Query
}

/** Returns the flags as a selection, where pairs are objects. */
export function selectionOf(io: Io, options: FilterOptions, groups: readonly string[]): Selected {
  const { header, extracted, body } = options
  return defined({
    ...commonOf(io, options, groups),
    headers: header === undefined ? undefined : Object.fromEntries(header.map(pairOf)),
    extracted: extracted === undefined ? undefined : Object.fromEntries(extracted.map(pairOf)),
    json: body === undefined ? undefined : Object.fromEntries(body.map(scalarPairOf)),
  }) as Selected
}

function commonOf(io: Io, options: FilterOptions, groups: readonly string[]) {
  const { source, handler, code, type, key, text, quarantined, after, before } = options
  return {
    groups: groups.length === 0 ? undefined : groups,
    sources: source,
    handler,
    class: options.class,
    code,
    type,
    key,
    text,
    quarantined,
    after: after === undefined ? undefined : pastOf(io, '--after', after),
    before: before === undefined ? undefined : pastOf(io, '--before', before),
  }
}

/** Returns a copy without undefined properties. */
export const defined = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** Parses a time such as `2026-01-31T10:00:00Z`, or `2h` for two hours ago. */
function pastOf(io: Io, flag: string, text: string): number {
  const ms = parseDuration(text as Duration)
  return ms === undefined ? dateOf(flag, text, 'how long ago') : io.now() - ms
}

/** Parses a time such as `2026-01-31T10:00:00Z`, or `2h` for two hours from now. Rejects past times. */
export function futureOf(io: Io, flag: string, text: string): number {
  const ms = parseDuration(text as Duration)
  const at = ms === undefined ? dateOf(flag, text, 'how long from now') : io.now() + ms
  if (at > io.now()) return at
  throw new CommandError(
    EXIT.usage,
    `${flag}: "${text}" is in the past. Use a future time, or how long from now, such as 2h.`,
  )
}

function dateOf(flag: string, text: string, orElse: string): number {
  const at = Date.parse(text)
  if (!Number.isNaN(at)) return at
  throw new CommandError(
    EXIT.usage,
    `${flag}: expected a time such as 2026-01-31T10:00:00Z, or ${orElse}, such as 2h; got "${text}".`,
  )
}

function pairOf(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new CommandError(EXIT.usage, `Expected name=value, got "${text}".`)
}

/** Parses the value as a JSON scalar, or else as text. The API parses query strings in the same way. */
function scalarPairOf(text: string): readonly [string, unknown] {
  const [pointer, value] = pairOf(text)
  try {
    const parsed: unknown = JSON.parse(value)
    return [pointer, typeof parsed === 'object' && parsed !== null ? value : parsed]
  } catch {
    // Not JSON: a text without quotes.
    return [pointer, value]
  }
}
