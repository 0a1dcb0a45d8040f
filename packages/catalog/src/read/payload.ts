import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../database.ts'
import { PART_BYTES } from '../ingest/payloads.ts'
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
    const parts = bytes <= PART_BYTES ? [first] : await readParts(run, id, bytes)
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
  return decryptParts(id, await readParts(run, id, bytes), keys)
}

/** Returns the stored preview. It is not encrypted, and the body is not read. */
export async function readPreview(run: RunSql, id: string): Promise<unknown> {
  const [row] = await run<{ preview: unknown }>(PREVIEW, [id])
  return row?.preview ?? undefined
}

/** 8 parts per statement, so that each statement ends in time for a body of any size. */
const PARTS_PER_STATEMENT = 8

async function readParts(run: RunSql, id: string, bytes: number): Promise<readonly PartRow[]> {
  const parts: PartRow[] = []
  do {
    const start = parts.length
    parts.push(...(await run<PartRow>(PARTS, [id, start, start + PARTS_PER_STATEMENT])))
    if (parts.length === start) {
      throw new Error(`A part of the payload of the dead letter "${id}" is missing.`)
    }
  } while (parts.length * PART_BYTES < bytes)
  return parts
}

async function decryptParts(
  id: string,
  parts: readonly PartRow[],
  keys: PayloadKeys | undefined,
): Promise<DrainedDeadLetter> {
  const [first] = parts
  if (first === undefined) throw new Error(`The payload of the dead letter "${id}" is missing.`)
  const { key_id: keyId, wrapped_key: wrappedKey, wire: encoded } = first
  let decrypt = (bytes: Uint8Array, _: number): Uint8Array => bytes
  if (keyId !== null && wrappedKey !== null) {
    decrypt = createDecryptor(await keyOf(keys, keyId), id, wrappedKey)
  }
  const bytes = Buffer.concat(parts.map(({ part, bytes: piece }) => decrypt(piece, part)))
  return decodeDeadLetter(decrypt(encoded, WIRE_PART), bytes)
}

interface PartRow {
  readonly part: number
  readonly bytes: Buffer
  readonly wire: Buffer
  readonly key_id: string | null
  readonly wrapped_key: Buffer | null
}
