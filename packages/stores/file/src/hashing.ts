import { hash } from 'node:crypto'

/** 128 bits of SHA-256: two ids with the same do not happen, so ids need no room in memory. */
export type IdHash = readonly [number, number, number, number]

/** By code units: two ids that differ in a lone surrogate are the same in UTF-8. */
export function hashOfId(id: string): IdHash {
  const digest = hash('sha256', Buffer.from(id, 'utf16le'), 'buffer')
  return [
    digest.readUInt32LE(0),
    digest.readUInt32LE(4),
    digest.readUInt32LE(8),
    digest.readUInt32LE(12),
  ]
}

export const hexOf = (words: IdHash): string =>
  words.map((word) => word.toString(16).padStart(8, '0')).join('')

/** What stands for "there is none". */
const ABSENT = 0

/** 32 bits (FNV-1a) to look for candidates by; whoever finds one compares the text itself. */
export function hashOfText(text: string | undefined): number {
  if (text === undefined) return ABSENT
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  return value >>> 0 || 1
}
