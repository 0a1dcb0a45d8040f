import { RedriveError } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { decodeDeadLetter } from '../dead-letter-codec.ts'
import type { PayloadKeys } from '../encryption.ts'
import { isId } from './check.ts'
import { createPartDecryptor, type PartRow } from './payload.ts'
import { ask, type Reader, type Statement } from './sql.ts'
import { EARLIER_PART, PART } from './statements.ts'

/** A message whose body is read in pieces, so that no process needs all of it in memory. */
export interface OpenPayload {
  /** The message as received from the broker, with an empty body. */
  readonly drained: DrainedDeadLetter
  /**
   * Returns the body in pieces of at most 1 MiB. Each is read from the database when the caller takes it. Throws if the
   * payload changes in between. The first piece is already read; further calls read the others again.
   */
  readonly pieces: () => AsyncIterable<Uint8Array>
}

/** A part, the number of all parts, and a version that changes when the payload is replaced. */
export interface SizedPart extends PartRow {
  /** Null except in part 0. */
  readonly parts: number | null
  readonly version: string
}

/** The pieces of a stored body, and the encoded headers of its message. */
export interface OpenBody {
  readonly wire: Uint8Array | undefined
  readonly pieces: () => AsyncGenerator<Uint8Array, void, undefined>
}

const EMPTY = new Uint8Array()

/** Opens the payload of a dead letter. Returns undefined if it does not exist. */
export const openPayload = (
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
): Promise<OpenPayload | undefined> =>
  openWith(reader, keys, id, (part) => ({ text: PART, values: [id, part] }))

/** Opens the payload of an earlier cycle before its edit. Returns undefined if it was not edited. */
export const openBeforeEdit = (
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
  cycle: number,
): Promise<OpenPayload | undefined> =>
  openWith(reader, keys, id, (part) => ({ text: EARLIER_PART, values: [id, part, cycle] }))

async function openWith(
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
  statement: (part: number) => Statement,
): Promise<OpenPayload | undefined> {
  const found = isId(id) ? await openBody(reader, keys, id, statement) : undefined
  if (found === undefined) return undefined
  const { wire, pieces } = found
  if (wire === undefined) throw new Error(`The payload of the dead letter "${id}" is missing.`)
  return { drained: decodeDeadLetter(wire, EMPTY), pieces }
}

/** Reads the first part. `statement` selects a part, with the columns of `SizedPart`. */
export async function openBody(
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
  statement: (part: number) => Statement,
): Promise<OpenBody | undefined> {
  const [first] = await ask<SizedPart>(reader, statement(0))
  if (first === undefined) return undefined
  const decryptor = await createPartDecryptor(id, first, keys)
  const start = decryptor.body(first)
  const { parts, version } = first
  async function* pieces() {
    yield start
    for (let part = 1; part < (parts ?? 0); part++) {
      const [next] = await ask<SizedPart>(reader, statement(part))
      if (next?.version !== version) throw changed(id)
      yield decryptor.body(next)
    }
  }
  return { wire: decryptor.wire(first), pieces }
}

const changed = (id: string) =>
  new RedriveError('CONFLICT', `The payload "${id}" was changed or deleted. Read it again.`)
