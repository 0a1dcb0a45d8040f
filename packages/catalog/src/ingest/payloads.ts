import type { Copy } from '../database.ts'
import { keyOf, type PayloadKeys, createEncryptor, WIRE_PART } from '../encryption.ts'
import { type CopyWriter, copyRows } from './copy.ts'
import type { DatedEntry } from './entry.ts'

/** 1 MiB per row: a larger body is split into several rows, so no statement needs all of it in memory. */
export const PART_BYTES = 1_048_576
const PAYLOADS =
  'dead_letter_payload (dead_letter_id, part, bytes, wire, key_id, wrapped_key, preview)'

interface Part {
  readonly id: string
  readonly part: number
  readonly bytes: Uint8Array
  /** Part 0 only. */
  readonly wire: Uint8Array | null
  readonly wrappedKey: Buffer | null
  readonly preview: string | null
}

export async function storePayloads(
  copy: Copy,
  entries: readonly DatedEntry[],
  keys: PayloadKeys | undefined,
): Promise<void> {
  const outerKey = keys === undefined ? undefined : await keyOf(keys, keys.current)
  const keyId = keys?.current ?? null
  await copyRows(copy, PAYLOADS, allParts(entries, outerKey), (writer, part) =>
    writePart(writer, part, keyId),
  )
}

/** Yields the parts one by one, so that a large body is not copied as a whole. */
function* allParts(entries: readonly DatedEntry[], outerKey: Uint8Array | undefined) {
  for (const entry of entries) yield* partsOf(entry, outerKey)
}

function writePart(to: CopyWriter, part: Part, keyId: string | null): void {
  to.row(7)
  to.uuid(part.id)
  to.integer(part.part)
  to.bytes(part.bytes)
  to.bytes(part.wire)
  to.text(keyId)
  to.bytes(part.wrappedKey)
  to.json(part.preview)
}

function* partsOf(entry: DatedEntry, outerKey: Uint8Array | undefined): Generator<Part> {
  const { id, wire, drained, preview } = entry
  const { bytes } = drained.delivery
  const encryptor = outerKey === undefined ? undefined : createEncryptor(outerKey, id)
  const encrypt = (plain: Uint8Array, part: number) => encryptor?.seal(plain, part) ?? plain
  yield {
    id,
    part: 0,
    bytes: encrypt(bytes.subarray(0, PART_BYTES), 0),
    wire: encrypt(wire, WIRE_PART),
    wrappedKey: encryptor?.wrappedKey ?? null,
    preview: preview ?? null,
  }
  for (let part = 1; part * PART_BYTES < bytes.length; part++) {
    const piece = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)
    yield { id, part, bytes: encrypt(piece, part), wire: null, wrappedKey: null, preview: null }
  }
}
