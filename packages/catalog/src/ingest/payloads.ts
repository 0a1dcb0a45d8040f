import type { Run } from '../database.ts'
import { keyOf, type PayloadKeys, sealerOf, WIRE_PART } from '../seal.ts'
import type { DatedEntry } from './entry.ts'

/** 1 MiB in a row: the rest of a larger body follows in rows of its own, so nobody needs it in one piece. */
export const PART_BYTES = 1_048_576
/** 8 MiB in a statement: what both sides hold in memory at once. */
const STATEMENT_BYTES = 8_388_608

/** All bytes travel as one value, as they are: an array of them would be written as digits, at twice the size. */
const INSERT = `
insert into redrive_catalog.dead_letter_payload (dead_letter_id, part, bytes, wire, key_id, wrapped_key, preview)
  select p.id, p.part, substring($1::bytea from p.at for p.size),
      case when p.part = 0 then substring($1::bytea from p.at + p.size for p.wire_size) end,
      $2, p.wrapped_key, p.preview::jsonb
    from unnest($3::uuid[], $4::integer[], $5::integer[], $6::integer[], $7::integer[], $8::bytea[], $9::text[])
      as p (id, part, at, size, wire_size, wrapped_key, preview)`

interface Part {
  readonly id: string
  readonly part: number
  readonly bytes: Uint8Array
  /** Part 0 only. */
  readonly wire: Uint8Array
  readonly wrappedKey: Buffer | null
  readonly preview: string | null
}

export async function storePayloads(
  run: Run,
  entries: readonly DatedEntry[],
  keys: PayloadKeys | undefined,
): Promise<void> {
  const outerKey = keys === undefined ? undefined : await keyOf(keys, keys.current)
  let waiting: Part[] = []
  let size = 0
  const flush = async () => {
    if (waiting.length > 0) await insert(run, waiting, keys?.current ?? null)
    waiting = []
    size = 0
  }
  for (const entry of entries) {
    for (const part of partsOf(entry, outerKey)) {
      waiting.push(part)
      size += part.bytes.length + part.wire.length
      if (size >= STATEMENT_BYTES) await flush()
    }
  }
  await flush()
}

const NOTHING = new Uint8Array()

/** One by one: a large body is not copied whole. */
function* partsOf(entry: DatedEntry, outerKey: Uint8Array | undefined): Generator<Part> {
  const { id, wire, drained, preview } = entry
  const { bytes } = drained.delivery
  const sealer = outerKey === undefined ? undefined : sealerOf(outerKey, id)
  const seal = (plain: Uint8Array, part: number) => sealer?.seal(plain, part) ?? plain
  yield {
    id,
    part: 0,
    bytes: seal(bytes.subarray(0, PART_BYTES), 0),
    wire: seal(wire, WIRE_PART),
    wrappedKey: sealer?.wrappedKey ?? null,
    preview: preview ?? null,
  }
  for (let part = 1; part * PART_BYTES < bytes.length; part++) {
    const piece = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)
    yield { id, part, bytes: seal(piece, part), wire: NOTHING, wrappedKey: null, preview: null }
  }
}

async function insert(run: Run, parts: readonly Part[], keyId: string | null): Promise<void> {
  let at = 1
  const starts = parts.map(({ bytes, wire }) => {
    const start = at
    at += bytes.length + wire.length
    return start
  })
  await run(INSERT, [
    Buffer.concat(parts.flatMap(({ bytes, wire }) => [bytes, wire])),
    keyId,
    parts.map(({ id }) => id),
    parts.map(({ part }) => part),
    starts,
    parts.map(({ bytes }) => bytes.length),
    parts.map(({ wire }) => wire.length),
    parts.map(({ wrappedKey }) => wrappedKey),
    parts.map(({ preview }) => preview),
  ])
}
