import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { catalog } from '../src/index.ts'
import { bodyOf, dead, ListSource, migrated, refusal } from './rig.ts'

const pool = await migrated('redrive_catalog_open_payload')
const key = randomBytes(32)
const made = catalog({ pool, keys: { current: 'k', get: () => key } })

const PIECE_MAX = 1_048_576
const BODY = randomBytes(2 * PIECE_MAX + 7)
let sources = 0

/** Stores one message with a body of three parts, and returns its id. */
async function stored(): Promise<string> {
  const name = `source-${(sources += 1)}`
  await made.ingest(
    new ListSource([dead({ delivery: { bytes: BODY, headers: { a: 'b' } } })], name),
  )
  const page = await made.deadLetters({ sources: [name], after: 0 })
  return page.deadLetters[0]?.id ?? ''
}

/** Reads the first piece and returns how to read the next one. */
async function begun(pieces: AsyncIterable<Uint8Array> | undefined) {
  const iterator = pieces?.[Symbol.asyncIterator]()
  expect((await iterator?.next())?.done).toBe(false)
  return async () => iterator?.next()
}

describe('a payload that is read in pieces', () => {
  test('is equal to the message, and no piece is larger than 1 MiB', async () => {
    const opened = await made.payload(await stored())
    const sizes: number[] = []
    for await (const piece of opened?.pieces() ?? []) sizes.push(piece.length)
    expect(sizes).toEqual([PIECE_MAX, PIECE_MAX, 7])
    expect((await bodyOf(opened?.pieces())).equals(BODY)).toBe(true)
    expect(opened?.drained.delivery).toMatchObject({ headers: { a: 'b' }, bytes: new Uint8Array() })
  })

  test('ends with an error if the dead letter failed again with another body in between', async () => {
    const id = await stored()
    const next = await begun((await made.payload(id))?.pieces())
    await pool.query('update redrive_catalog.dead_letter set cycle = cycle + 1 where id = $1', [id])
    expect(await refusal(next())).toMatchObject({ code: 'CONFLICT' })
  })

  test('ends with an error if it is deleted in between', async () => {
    const id = await stored()
    const next = await begun((await made.payload(id))?.pieces())
    await pool.query('delete from redrive_catalog.dead_letter_payload where dead_letter_id = $1', [
      id,
    ])
    expect(await refusal(next())).toMatchObject({ code: 'CONFLICT' })
    expect(await made.payload(id)).toBeUndefined()
  })

  test('does not exist for another id, and needs its key', async () => {
    const id = await stored()
    expect(await made.payload('no id')).toBeUndefined()
    expect(await made.payload('00000000-0000-4000-8000-000000000000')).toBeUndefined()
    expect((await refusal(catalog({ pool }).payload(id))).message).toContain('the key "k"')
  })

  test('can be a set-aside message', async () => {
    const name = 'aside'
    const message = dead({ delivery: { bytes: BODY, headers: { a: 'b' } } })
    await made.ingest(new ListSource([message], name), { maxPayloadBytes: 1 })
    const [one] = (await made.setAside.list({ sources: [name] })).messages
    const opened = await made.setAside.open(one?.id ?? '')
    expect((await bodyOf(opened?.pieces())).equals(BODY)).toBe(true)
    expect(opened).toMatchObject({ ...one, drained: { delivery: { headers: { a: 'b' } } } })
    expect(opened?.encodedHeaders).toContain('table')
    expect(await made.setAside.open('no id')).toBeUndefined()
  })
})
