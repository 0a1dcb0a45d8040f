import type { OutboundEvent } from '@redrive/runtime'
import type { EntryRow } from './read.ts'

/** 200 entries and 256 KiB in one delivery: below the limits of common receivers. An entry has at most 64 KiB. */
const BATCH_BYTES = 262_144
export const BATCH_ENTRIES = 200

/** An entry as a line of JSON. */
export interface ExportLine {
  readonly sequence: number
  readonly id: string
  readonly at: number
  readonly text: string
}

/**
 * Returns an entry as one line of JSON. Its id is its hash: unlike the sequence, it differs after a restore of the
 * database. `facts` is unchanged, because the hash covers its exact characters.
 */
export function lineOf(row: EntryRow): ExportLine {
  const { at_ms, sequence, facts, hash, previous, ...rest } = row
  const at = Number(at_ms)
  const time = new Date(at).toISOString()
  const head = { id: hash, sequence: Number(sequence), at, time, ...rest, previous }
  const text = `${JSON.stringify(head).slice(0, -1)},"facts":${facts}}`
  return { sequence: head.sequence, id: hash, at, text }
}

/** Returns the first lines that fit into one delivery; at least one. */
export function firstBatch(lines: readonly ExportLine[]): readonly ExportLine[] {
  let bytes = 0
  const end = lines.findIndex(({ text }, at) => {
    bytes += Buffer.byteLength(text) + 1
    return at > 0 && bytes > BATCH_BYTES
  })
  return end === -1 ? lines : lines.slice(0, end)
}

const TYPE = 'redrive.audit'

/** Returns one event for each entry. */
export const eachLine = (lines: readonly ExportLine[]): readonly OutboundEvent[] =>
  lines.map(({ id, at, text }) => eventOf(id, at, text, 'application/json'))

/**
 * Returns one event for all entries. Its id names the first and the last entry: a repeated delivery with more entries
 * must have another id, because a receiver may ignore an id that it has seen.
 */
export function oneBatch(lines: readonly ExportLine[]): readonly OutboundEvent[] {
  const [first, last] = [lines[0], lines.at(-1)]
  if (first === undefined || last === undefined) return []
  const text = lines.map((line) => `${line.text}\n`).join('')
  return [eventOf(`${first.sequence}-${last.id}`, last.at, text, 'application/x-ndjson')]
}

function eventOf(id: string, at: number, text: string, contentType: string): OutboundEvent {
  const bytes = Buffer.from(text)
  return { id, key: id, type: TYPE, lane: undefined, at, bytes, contentType, headers: {} }
}
