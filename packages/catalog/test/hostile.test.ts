import { randomBytes } from 'node:crypto'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { describe, expect, test } from 'vitest'
import { catalog } from '../src/index.ts'
import { dead, ListSource, migrated, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_hostile')
const made = catalog({ pool })

/** Ingests one dead letter and reads it back. */
async function through(deadLetter: DrainedDeadLetter, from = made) {
  expect(await from.ingest(new ListSource([deadLetter]))).toEqual({
    added: 1,
    failedAgain: 0,
    known: 0,
    setAside: 0,
  })
  const [row] = await rows<{ id: string }>(
    pool,
    'select id from redrive_catalog.dead_letter order by ingested_at desc limit 1',
  )
  const found = await from.deadLetter(row?.id ?? '')
  if (found === undefined) throw new Error('The dead letter does not exist.')
  return found
}

/** Expects that the dead letter equals the drained one exactly. */
const expectSame = (stored: DrainedDeadLetter, drained: DrainedDeadLetter) => {
  expect(Buffer.from(stored.delivery.bytes).equals(Buffer.from(drained.delivery.bytes))).toBe(true)
  const { bytes: _, ...delivery } = stored.delivery
  const { bytes: __, ...expected } = drained.delivery
  expect({ ...stored, delivery }).toStrictEqual({ ...drained, delivery: expected })
}

const deep = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels))

describe('a hostile dead letter is stored exactly as it arrived', () => {
  test.each([
    ['bytes that are no text', { bytes: Buffer.from([0xff, 0xfe, 0, 0xc3, 0x28]) }],
    ['a body of 100,000 levels', { bytes: deep(100_000) }],
    ['a small body of 30,000 levels', { bytes: deep(30_000) }],
    [
      'JSON with NUL, lone surrogates and __proto__',
      {
        bytes: Buffer.from(
          String.raw`{"a":"\u0000","b":"\ud800","__proto__":{"admin":true},"c\u0000":1e400}`,
        ),
      },
    ],
    ['no body at all', { bytes: new Uint8Array(), isTombstone: true }],
    [
      'names with NUL and lone surrogates',
      {
        id: 'a\0b\ud800',
        key: 'k\0\udfff',
        type: '\0',
        lane: '\ud800',
        contentType: '\0/\0',
      },
    ],
    ['names longer than any column', { key: 'k'.repeat(100_000), type: 't'.repeat(100_000) }],
  ])('%s', async (_, delivery) => {
    const came = dead({ delivery })
    expectSame((await through(came)).drained, came)
  })

  test('headers of every kind', async () => {
    const headers: Record<string, unknown> = {
      text: 'a\0b\ud800',
      bytes: Buffer.from([0, 255]),
      none: undefined,
      nothing: null,
      nan: Number.NaN,
      zero: -0,
      far: Number.NEGATIVE_INFINITY,
      big: 2n ** 70n,
      date: new Date(5),
      list: [1, [2, { $: ['bytes', 'AA=='] }]],
      $: 'dollar',
      nested: { '\0': { constructor: 1 } },
    }
    Object.defineProperty(headers, '__proto__', { value: 'x', enumerable: true })
    const came = dead({
      delivery: { headers },
      envelope: { a: '\0\ud800' },
      reason: '\0',
      message: '\0\ud800',
    })
    const { drained } = await through(came)
    expectSame(drained, came)
    expect(Object.getOwnPropertyDescriptor(drained.delivery.headers, '__proto__')?.value).toBe('x')
    expect(Object.getPrototypeOf(drained.delivery.headers)).toBe(Object.prototype)
  })

  test('10,000 headers, while a list shows only the first', async () => {
    const headers = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, at) => [`h${at}`, 'v'.repeat(50)]),
    )
    const came = dead({ delivery: { headers } })
    const found = await through(came)
    expectSame(found.drained, came)
    expect(Object.keys(found.headers)).toHaveLength(65)
    expect(found.headers['…']).toBe(10_000 - 64)
  })

  test('implausible numbers and times', async () => {
    const { delivery, ...rest } = dead()
    const cycle = { ...delivery.cycle, attempts: 9e15, number: 2 ** 40 }
    const came = { ...rest, delivery: { ...delivery, cycle } }
    const found = await through(came)
    expectSame(found.drained, came)
    expect(found.attempts).toBe(1_000_000)
  })

  test('a body of many parts', async () => {
    const came = dead({ delivery: { bytes: randomBytes(20 * 1_048_576 + 7) } })
    const found = await through(came)
    expectSame(found.drained, came)
    expect(found.payloadBytes).toBe(20 * 1_048_576 + 7)
    expect(found.preview).toBeUndefined()
  })
})

describe('a preview', () => {
  test.each([
    ['an escaped NUL', String.raw`{"a":"x\u0000y"}`, { a: 'x\ufffdy' }],
    ['half of a pair', String.raw`["\ud800"]`, ['\ufffd']],
    ['an escaped backslash before a u', String.raw`["\\u0000"]`, [String.raw`\u0000`]],
    ['an exponent that only we know', '[1e400, 1E-400]', [null, 0]],
    ['an exponent that only the database knows', '{"a":1e200000}', { a: null }],
    ['more digits than we know', '[12345678901234567890]', [12345678901234567000]],
    ['more digits behind the point', '[0.12345678901234567]', [JSON.parse('0.12345678901234567')]],
    [
      'digits and exponents inside texts',
      '["1e999","12345678901234567890"]',
      ['1e999', '12345678901234567890'],
    ],
    ['the same name twice', '{"a":1,"a":2}', { a: 2 }],
    ['a long text', `["${'x'.repeat(9_000)}"]`, ['x'.repeat(8_192)]],
    ['a number alone', '7', 7],
    ['brackets behind an escaped quote', `["\\"${'['.repeat(100)}"]`, [`"${'['.repeat(100)}`]],
  ])('equals the value that JavaScript parses: %s', async (_, text, preview) => {
    const found = await through(dead({ delivery: { bytes: Buffer.from(text) } }))
    expect(found.preview).toEqual(preview)
  })
})

test('finds a number with too many digits by the value that JavaScript parses', async () => {
  const number = '12345678901234567890'
  const { group } = await through(dead({ delivery: { bytes: Buffer.from(`{"n":${number}}`) } }))
  const { deadLetters } = await made.deadLetters({
    groups: [group],
    json: { '/n': Number(number) },
  })
  expect(deadLetters).toHaveLength(1)
})

describe('masks', () => {
  test('hide values for display, but not in replays', async () => {
    const body = {
      card: { number: '4111' },
      items: [{ pin: 1 }, { pin: 2, name: 'a' }],
      'a/b': 3,
      other: '4111',
    }
    const came = dead({
      delivery: {
        bytes: Buffer.from(JSON.stringify(body)),
        headers: { Authorization: 'Bearer x', trace: 't' },
      },
    })
    const source = new ListSource([came])
    await made.ingest(source, {
      mask: ['/card/number', '/items/*/pin', '/a~1b'],
      maskHeaders: ['authorization'],
    })
    const { deadLetters } = await made.deadLetters({ key: came.delivery.key })
    const found = await made.deadLetter(deadLetters[0]?.id ?? '')
    expect(found?.preview).toEqual({
      card: { number: '***' },
      items: [{ pin: '***' }, { pin: '***', name: 'a' }],
      'a/b': '***',
      other: '4111',
    })
    expect(found?.headers).toEqual({ Authorization: '***', trace: 't' })
    expectSame(found?.drained as DrainedDeadLetter, came)
  })
})

describe('encryption', () => {
  const all = new Map([
    ['k1', randomBytes(32)],
    ['k2', randomBytes(32)],
  ])
  const keysOf = (current: string) => ({
    current,
    get: async (id: string) => all.get(id) ?? randomBytes(32),
  })
  const secret = () =>
    dead({
      delivery: {
        bytes: Buffer.concat([Buffer.from('{"pin":"secret"}'), Buffer.alloc(1_500_000, 32)]),
        headers: { token: 'hush' },
      },
    })

  test('hides the body, the exact headers and the preview, and decrypts them with any known key', async () => {
    const came = secret()
    const { id, drained, preview } = await through(came, catalog({ pool, keys: keysOf('k1') }))
    expectSame(drained, came)
    expect(preview).toBeUndefined()
    const parts = await rows<{ bytes: Buffer; wire: Buffer | null }>(
      pool,
      'select * from redrive_catalog.dead_letter_payload where dead_letter_id = $1',
      [id],
    )
    expect(parts).toHaveLength(2)
    for (const { bytes, wire } of parts) {
      expect(bytes.includes('secret')).toBe(false)
      expect(wire?.includes('hush') ?? false).toBe(false)
    }
    const later = await catalog({ pool, keys: keysOf('k2') }).deadLetter(id)
    expectSame(later?.drained as DrainedDeadLetter, came)
    for (const keys of [undefined, { current: 'k2', get: () => undefined }]) {
      const without = catalog(keys === undefined ? { pool } : { pool, keys })
      const error = await refusal(without.deadLetter(id))
      expect(error).toMatchObject({ code: 'CONFLICT' })
      expect(error.message).toContain('encrypted with the key "k1", which is missing')
      // The preview is still readable, because it needs no key.
      expect(await without.deadLetterPreview(id)).toMatchObject({ id, preview: undefined })
    }
  })

  test('stores a preview only if it is enabled', async () => {
    const from = catalog({ pool, keys: keysOf('k1') })
    const { preview } = await through(dead(), from)
    expect(preview).toBeUndefined()
    const asked = dead()
    await from.ingest(new ListSource([asked]), { preview: true })
    const { deadLetters } = await from.deadLetters({ key: asked.delivery.key })
    expect((await from.deadLetter(deadLetters[0]?.id ?? ''))?.preview).toEqual({ order: 1 })
  })

  test('does not decrypt a part of another dead letter', async () => {
    const from = catalog({ pool, keys: keysOf('k1') })
    const one = await through(secret(), from)
    const other = await through(secret(), from)
    await pool.query(
      `update redrive_catalog.dead_letter_payload p set bytes = o.bytes, wire = o.wire, wrapped_key = o.wrapped_key
        from redrive_catalog.dead_letter_payload o
        where p.dead_letter_id = $1 and o.dead_letter_id = $2 and o.part = p.part`,
      [one.id, other.id],
    )
    expect((await refusal(from.deadLetter(one.id))).message).toMatch(/authenticate/)
  })
})
