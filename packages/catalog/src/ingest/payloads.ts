import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Copy } from '../database.ts'
import { keyOf, type PayloadKeys, createEncryptor, WIRE_PART } from '../encryption.ts'
import { type CopyWriter, copyRows } from './copy.ts'
import type { DatedEntry } from './entry.ts'

/** 1 MiB per row: a larger body is split into several rows, so no statement needs all of it in memory. */
export const PART_BYTES = 1_048_576
const PAYLOADS =
  'dead_letter_payload (dead_letter_id, part, bytes, wire, key_id, wrapped_key, preview)'

/** A message whose body and encoded headers are stored. */
interface StoredMessage {
  readonly id: string
  readonly drained: DrainedDeadLetter
  /** The message without its body, encoded. */
  readonly wire: Buffer
}

interface Part {
  readonly id: string
  readonly part: number
  readonly bytes: Uint8Array
  /** Part 0 only. */
  readonly wire: Uint8Array | null
  readonly wrappedKey: Buffer | null
}

/** Stores the payloads of dead letters, with their previews. */
export const storePayloads = (
  copy: Copy,
  entries: readonly DatedEntry[],
  keys: PayloadKeys | undefined,
): Promise<void> =>
  storeParts(copy, PAYLOADS, entries, keys, {
    columns: 1,
    write: (to, { preview }, isFirst) => to.json(isFirst ? (preview ?? null) : null),
  })

/** Columns of a table beyond the common columns of all tables of payloads. */
interface FurtherColumns<T> {
  readonly columns: number
  readonly write: (to: CopyWriter, message: T, isFirst: boolean) => void
}

/** Stores bodies in parts. `target` has the columns id, part, bytes, wire, key id and wrapped key, then the further ones. */
export async function storeParts<T extends StoredMessage>(
  copy: Copy,
  target: string,
  messages: readonly T[],
  keys: PayloadKeys | undefined,
  further?: FurtherColumns<T>,
): Promise<void> {
  if (messages.length === 0) return
  const outerKey = keys === undefined ? undefined : await keyOf(keys, keys.current)
  const keyId = keys?.current ?? null
  await copyRows(copy, target, allParts(messages, outerKey), (to, { message, part }) => {
    to.row(6 + (further?.columns ?? 0))
    to.uuid(part.id)
    to.integer(part.part)
    to.bytes(part.bytes)
    to.bytes(part.wire)
    to.text(keyId)
    to.bytes(part.wrappedKey)
    further?.write(to, message, part.part === 0)
  })
}

/** Yields the parts one by one, so that a large body is not copied as a whole. */
function* allParts<T extends StoredMessage>(
  messages: readonly T[],
  outerKey: Uint8Array | undefined,
) {
  for (const message of messages) {
    for (const part of partsOf(message, outerKey)) yield { message, part }
  }
}

function* partsOf(message: StoredMessage, outerKey: Uint8Array | undefined): Generator<Part> {
  const { id, wire, drained } = message
  const { bytes } = drained.delivery
  const encryptor = outerKey === undefined ? undefined : createEncryptor(outerKey, id)
  const encrypt = (plain: Uint8Array, part: number) => encryptor?.seal(plain, part) ?? plain
  yield {
    id,
    part: 0,
    bytes: encrypt(bytes.subarray(0, PART_BYTES), 0),
    wire: encrypt(wire, WIRE_PART),
    wrappedKey: encryptor?.wrappedKey ?? null,
  }
  for (let part = 1; part * PART_BYTES < bytes.length; part++) {
    const piece = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)
    yield { id, part, bytes: encrypt(piece, part), wire: null, wrappedKey: null }
  }
}
