import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Run } from '../database.ts'
import { PART_BYTES } from '../ingest/payloads.ts'
import { keyOf, openerOf, type PayloadKeys, WIRE_PART } from '../seal.ts'
import { decodeWire } from '../wire.ts'

const FIRST_PARTS = `
select dead_letter_id, part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.dead_letter_payload where dead_letter_id = any($1::uuid[]) and part = 0`

/** As the broker gave them, by id. One whose payload is not there is not in the answer. */
export async function readDrained(
  run: Run,
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
    found.set(id, await opened(id, parts, keys))
  }
  return found
}

/** The same of one, which must be there. */
export async function readPayload(
  run: Run,
  keys: PayloadKeys | undefined,
  { id, bytes }: { readonly id: string; readonly bytes: number },
): Promise<DrainedDeadLetter> {
  return opened(id, await readParts(run, id, bytes), keys)
}

const PREVIEW = `
select preview from redrive_catalog.dead_letter_payload where dead_letter_id = $1::uuid and part = 0`

/** As it was kept for people: in the clear, and without the body. */
export async function readPreview(run: Run, id: string): Promise<unknown> {
  const [row] = await run<{ preview: unknown }>(PREVIEW, [id])
  return row?.preview ?? undefined
}

const PARTS = `
select part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.dead_letter_payload
  where dead_letter_id = $1::uuid and part >= $2 and part < $3 order by part`

/** 8 parts in a statement: each has to end in time, however large the body is. */
const PARTS_AT_ONCE = 8

async function readParts(run: Run, id: string, bytes: number): Promise<readonly PartRow[]> {
  const parts: PartRow[] = []
  do {
    const start = parts.length
    parts.push(...(await run<PartRow>(PARTS, [id, start, start + PARTS_AT_ONCE])))
    if (parts.length === start) throw new Error(`A part of the payload of ${id} is missing.`)
  } while (parts.length * PART_BYTES < bytes)
  return parts
}

async function opened(
  id: string,
  parts: readonly PartRow[],
  keys: PayloadKeys | undefined,
): Promise<DrainedDeadLetter> {
  const [first] = parts
  if (first === undefined) throw new Error(`The payload of ${id} is missing.`)
  const { key_id: keyId, wrapped_key: wrappedKey, wire } = first
  let open = (bytes: Uint8Array, _: number): Uint8Array => bytes
  if (keyId !== null && wrappedKey !== null) {
    open = openerOf(await keyOf(keys, keyId), id, wrappedKey)
  }
  const bytes = Buffer.concat(parts.map(({ part, bytes: piece }) => open(piece, part)))
  return decodeWire(open(wire, WIRE_PART), bytes)
}

interface PartRow {
  readonly part: number
  readonly bytes: Buffer
  readonly wire: Buffer
  readonly key_id: string | null
  readonly wrapped_key: Buffer | null
}
