import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../database.ts'
import { PART_BYTES } from '../ingest/payloads.ts'
import { type StoredPreview, storedPreview } from '../ingest/preview.ts'
import { keyOf, createDecryptor, type PayloadKeys, WIRE_PART } from '../encryption.ts'
import { decodeDeadLetter } from '../dead-letter-codec.ts'
import { FIRST_PARTS, PREVIEW, PARTS } from './statements.ts'

/** Returns the messages as received from the broker, by id. Ids without a payload are left out. */
export async function readDrained(
  run: RunSql,
  keys: PayloadKeys | undefined,
  sizes: readonly { readonly id: string; readonly bytes: number }[],
): Promise<ReadonlyMap<string, DrainedDeadLetter>> {
  const rows = await run<PartRow & { dead_letter_id: string }>(FIRST_PARTS, [
    sizes.map(({ id }) => id),
  ])
  const firsts = new Map(rows.map((row) => [row.dead_letter_id, row]))
  const found = new Map<string, DrainedDeadLetter>()
  for (const { id, bytes } of sizes) {
    const first = firsts.get(id)
    if (first === undefined) continue
    const parts = bytes <= PART_BYTES ? [first] : await readParts(run, { text: PARTS, id, bytes })
    found.set(id, await decryptParts(id, parts, keys))
  }
  return found
}

/** Returns one message as received from the broker. Throws if its payload is missing. */
export async function readPayload(
  run: RunSql,
  keys: PayloadKeys | undefined,
  { id, bytes }: { readonly id: string; readonly bytes: number },
): Promise<DrainedDeadLetter> {
  return decryptParts(id, await readParts(run, { text: PARTS, id, bytes }), keys)
}

/** Returns the stored preview. It is not encrypted, and the body is not read. */
export async function readPreview(run: RunSql, id: string): Promise<StoredPreview> {
  const [row] = await run<{ preview: unknown }>(PREVIEW, [id])
  return storedPreview(row?.preview)
}

/** 8 parts per statement, so that each statement ends in time for a body of any size. */
const PARTS_PER_STATEMENT = 8

/** Reads all parts of a body with this size. `text` selects the parts of an id in a range. */
export async function readParts(
  run: RunSql,
  { text, id, bytes }: { readonly text: string; readonly id: string; readonly bytes: number },
): Promise<readonly PartRow[]> {
  const parts: PartRow[] = []
  do {
    const start = parts.length
    parts.push(...(await run<PartRow>(text, [id, start, start + PARTS_PER_STATEMENT])))
    if (parts.length === start) {
      throw new Error(`A part of the payload "${id}" is missing.`)
    }
  } while (parts.length * PART_BYTES < bytes)
  return parts
}

/** Returns the message of all its parts. */
async function decryptParts(
  id: string,
  parts: readonly PartRow[],
  keys: PayloadKeys | undefined,
): Promise<DrainedDeadLetter> {
  const { bytes, wire } = await openParts(id, parts, keys)
  if (wire === undefined) throw new Error(`The payload of the dead letter "${id}" is missing.`)
  return decodeDeadLetter(wire, bytes)
}

/** Decrypts and joins the parts of one message. */
export async function openParts(
  id: string,
  parts: readonly PartRow[],
  keys: PayloadKeys | undefined,
): Promise<{ readonly bytes: Buffer; readonly wire: Uint8Array | undefined }> {
  const [first] = parts
  const decryptor = await createPartDecryptor(id, first, keys)
  return { bytes: Buffer.concat(parts.map(decryptor.body)), wire: decryptor.wire(first) }
}

interface PartDecryptor {
  readonly body: (row: PartRow) => Uint8Array
  readonly wire: (first: PartRow | undefined) => Uint8Array | undefined
}

/** Returns functions for the parts of one message. The first part contains its key. */
export async function createPartDecryptor(
  id: string,
  first: PartRow | undefined,
  keys: PayloadKeys | undefined,
): Promise<PartDecryptor> {
  const { key_id: keyId = null, wrapped_key: wrappedKey = null } = first ?? {}
  let decrypt = (bytes: Uint8Array, _: number): Uint8Array => bytes
  if (keyId !== null && wrappedKey !== null) {
    decrypt = createDecryptor(await keyOf(keys, keyId), id, wrappedKey)
  }
  return {
    body: ({ part, bytes }) => decrypt(bytes, part),
    wire: (row) => (row?.wire ? decrypt(row.wire, WIRE_PART) : undefined),
  }
}

export interface PartRow {
  readonly part: number
  readonly bytes: Buffer
  /** Part 0 only. */
  readonly wire: Buffer | null
  readonly key_id: string | null
  readonly wrapped_key: Buffer | null
}
