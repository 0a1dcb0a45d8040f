import { hash } from 'node:crypto'

/** What makes a dead letter itself and not another. */
export interface Identity {
  readonly source: string
  readonly messageId: string
  readonly cycle: number
  /** Of the body: a producer that uses an id twice must not lose a message for it. */
  readonly sha256: Buffer
}

/** 16 bytes that are the same whenever it is drained. */
export function identityHash({ source, messageId, cycle, sha256 }: Identity): Buffer {
  // JSON keeps the borders between the parts, whatever characters they contain.
  const parts = [Buffer.from(JSON.stringify([source, messageId, cycle])), sha256]
  return sha256Of(Buffer.concat(parts)).subarray(0, 16)
}

export const sha256Of = (content: Uint8Array | string): Buffer => hash('sha256', content, 'buffer')

const MOMENT_BYTES = 6

/** The moment of the first failure and the hash: ids are in the order of time, and the same each time. */
export function deadLetterId(firstFailedAt: number, hash: Buffer): string {
  const bytes = Buffer.from(hash)
  bytes.writeUIntBE(firstFailedAt, 0, MOMENT_BYTES)
  return uuidOf(bytes)
}

/** Groups need no table to be looked up in: alike failures of a source have the same id everywhere. */
export function groupId(source: string, signature: string): string {
  return uuidOf(sha256Of(JSON.stringify([source, signature])))
}

/** Version 8: made by rules of our own. */
export function uuidOf(bytes: Buffer): string {
  const own = Buffer.from(bytes.subarray(0, 16))
  own[6] = ((own[6] ?? 0) & 0x0f) | 0x80
  own[8] = ((own[8] ?? 0) & 0x3f) | 0x80
  const hex = own.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** 2000 and 2100: a moment outside was not said by a clock. */
const EARLIEST = Date.UTC(2000, 0)
const LATEST = Date.UTC(2100, 0)

/** A moment in whole ms, when it can be one. */
export function momentOf(at: number | undefined): number | undefined {
  return at !== undefined && at >= EARLIEST && at < LATEST ? Math.floor(at) : undefined
}
