import { hash } from 'node:crypto'

/** 128 bits of SHA-256: collisions do not happen in practice, so ids need no space in memory. */
export type IdHash = readonly [number, number, number, number]

/** Hashes code units: in UTF-8, two ids that differ in a lone surrogate would be equal. */
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

/** The hash of an absent text. */
const ABSENT = 0

/** Returns 32 bits (FNV-1a) to find candidates. The caller compares the text of a candidate. */
export function hashOfText(text: string | undefined): number {
  if (text === undefined) return ABSENT
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  return value >>> 0 || 1
}
