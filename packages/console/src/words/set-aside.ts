import type { Output } from '@redrive/api'
import { SET_ASIDE_STATUSES } from '@redrive/api/enums'
import { FilterError, filterWords } from '@redrive/api/filter'

type Message = Output<'getSetAside'>
type Status = Message['status']

export const REASON_NAMES: Readonly<Record<Message['reason'], string>> = {
  body_too_large: 'Body is too large',
  headers_not_publishable: 'Headers cannot be published',
  headers_not_storable: 'Headers cannot be stored',
  unreadable: 'Headers cannot be read',
  rejected_by_database: 'Rejected by the database',
}

export interface SetAsideFilter {
  readonly sources?: string[]
  readonly statuses?: Status[]
}

export const SET_ASIDE_KEYS = [
  { name: 'source', description: 'Name of the source' },
  { name: 'status', description: 'Status; without it: open, requested, replaying' },
] as const

export type ParsedSetAside = { readonly query: SetAsideFilter } | { readonly problem: string }

/** Reads the words of a filter for set-aside messages. */
export function parseSetAside(filter: string): ParsedSetAside {
  try {
    return filterWords(filter).reduce<ParsedSetAside>(
      (parsed, { field, value }) => ('problem' in parsed ? parsed : added(parsed, field, value)),
      { query: {} },
    )
  } catch (error) {
    if (error instanceof FilterError) return { problem: error.message }
    throw error
  }
}

function added(
  { query }: { readonly query: SetAsideFilter },
  field: string | undefined,
  value: string,
): ParsedSetAside {
  if (field === 'source' && value !== '')
    return { query: { ...query, sources: [...(query.sources ?? []), value] } }
  const status = SET_ASIDE_STATUSES.find((one) => one === value)
  if (field === 'status' && status !== undefined)
    return { query: { ...query, statuses: [...(query.statuses ?? []), status] } }
  if (field === 'status')
    return { problem: `"status" expects one of ${SET_ASIDE_STATUSES.join(', ')}.` }
  return {
    problem: `The filter has the fields source and status, as in source:orders status:discarded.`,
  }
}

/** 16 bytes per line, as in other hex viewers. */
const LINE_BYTES = 16

export interface HexLine {
  readonly at: string
  readonly hex: string
  readonly text: string
}

/** Returns bytes as lines of hexadecimal digits and of the characters that they are in ASCII. */
export function hexLines(bytes: Uint8Array, most: number): readonly HexLine[] {
  const shown = bytes.subarray(0, most)
  return Array.from({ length: Math.ceil(shown.length / LINE_BYTES) }, (_, line) => {
    const part = [...shown.subarray(line * LINE_BYTES, (line + 1) * LINE_BYTES)]
    return {
      at: (line * LINE_BYTES).toString(16).padStart(4, '0'),
      hex: part.map((byte) => byte.toString(16).padStart(2, '0')).join(' '),
      text: part
        .map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
        .join(''),
    }
  })
}

/** Returns the bytes of base64 text. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  // A loop, because a callback for each of many million bytes takes seconds.
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at)
  return bytes
}

/** Returns the text of bytes, or undefined if they are not valid UTF-8. */
export function textOfBytes(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
