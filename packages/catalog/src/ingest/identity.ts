import { hash } from 'node:crypto'

/** The values that identify a dead letter, next to its first failure time. */
export interface Identity {
  readonly source: string
  readonly messageId: string
  readonly cycle: number
  /** Hash of the body. It keeps two messages apart when a producer uses an id twice. */
  readonly sha256: Buffer
}

/** Returns 16 bytes that are the same each time the message is drained. */
export function identityHash({ source, messageId, cycle, sha256 }: Identity): Buffer {
  // JSON separates the values unambiguously, whatever characters they contain.
  const parts = [Buffer.from(JSON.stringify([source, messageId, cycle])), sha256]
  return sha256Of(Buffer.concat(parts)).subarray(0, 16)
}

export const sha256Of = (content: Uint8Array | string): Buffer => hash('sha256', content, 'buffer')

const TIMESTAMP_BYTES = 6

/** Returns an id made of the first failure time and the hash. Ids sort by time and never change. */
export function deadLetterId(firstFailedAt: number, hash: Buffer): string {
  const bytes = Buffer.from(hash)
  bytes.writeUIntBE(firstFailedAt, 0, TIMESTAMP_BYTES)
  return uuidOf(bytes)
}

/** Returns the id of a group. It is computed, so similar failures of a source get the same id without a lookup. */
export function groupId(source: string, signature: string): string {
  return uuidOf(sha256Of(JSON.stringify([source, signature])))
}

/** Returns the id of a named group or of a part of it. Three and more values: no signature has the same id. */
export function namedGroupId(
  source: string,
  name: string,
  ...part: readonly (string | null)[]
): string {
  return uuidOf(sha256Of(JSON.stringify([source, 'name', name, ...part])))
}

/** Returns the bytes as a UUID of version 8, which is the version for custom rules. */
export function uuidOf(bytes: Buffer): string {
  const own = Buffer.from(bytes.subarray(0, 16))
  own[6] = ((own[6] ?? 0) & 0x0f) | 0x80
  own[8] = ((own[8] ?? 0) & 0x3f) | 0x80
  const hex = own.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** 2000 to 2100: a timestamp outside this range does not come from a clock. */
const EARLIEST = Date.UTC(2000, 0)
const LATEST = Date.UTC(2100, 0)

/** Returns a timestamp in whole ms, or undefined if it is not plausible. */
export function momentOf(at: number | undefined): number | undefined {
  return at !== undefined && at >= EARLIEST && at < LATEST ? Math.floor(at) : undefined
}
