import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { DrainedDeadLetter, ReplayMessage } from '@redrive/runtime'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { alertsOf, catalog } from '../src/index.ts'
import { TABLES } from '../src/migrations/0001-tables.ts'
import { decodeAny, encodeAny } from '../src/set-aside/codec.ts'
import { SET_ASIDE } from '../src/migrations/0008-set-aside.ts'
import { dead, emptyDatabase, ListSource, migrated, poolOn, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_set_aside')
const made = catalog({ pool, approval: 'another_person' })

/** Returns a list nested in lists. */
function nested(levels: number): unknown {
  let value: unknown = 'x'
  for (let level = 0; level < levels; level++) value = [value, { level }]
  return value
}

/** Expects that the message equals the drained one exactly. Compares without recursion, because headers may be deep. */
function expectSame(stored: DrainedDeadLetter | undefined, drained: DrainedDeadLetter): void {
  expect(Buffer.from(stored?.delivery.bytes ?? []).equals(drained.delivery.bytes)).toBe(true)
  const withoutBody = ({ delivery, ...rest }: DrainedDeadLetter) => {
    const { bytes: _, ...others } = delivery
    return encodeAny({ ...rest, delivery: others }).toString()
  }
  expect(withoutBody(stored as DrainedDeadLetter)).toBe(withoutBody(drained))
}

/** Returns all set-aside messages of a source, with their content. */
async function asideOf(source: string, from = made) {
  const { messages } = await from.setAside.list({ sources: [source], limit: 200 })
  return Promise.all(messages.map(async ({ id }) => from.setAside.read(id)))
}

/** Expects that each drained message is set aside once, unchanged. */
async function expectWhole(source: string, drained: readonly DrainedDeadLetter[], from = made) {
  const stored = await asideOf(source, from)
  expect(stored).toHaveLength(drained.length)
  for (const one of drained) {
    expectSame(stored.find((some) => some?.messageId === one.delivery.id)?.drained, one)
  }
}

const nameOf = () => `orders-${randomUUID()}`

describe('a message that cannot be catalogued is set aside whole and does not block others', () => {
  test('a large body, deep headers, values without a text, and values that the database rejects', async () => {
    const name = nameOf()
    const rejected = [
      dead({ delivery: { bytes: randomBytes(3_000_000), headers: { trace: 'a\0' } } }),
      dead({ delivery: { headers: { nested: nested(10_000) } } }),
      dead({ delivery: { headers: { act: () => 1 } } }),
      dead({ message: 'the database does not like this' }),
      { ...dead(), problem: { code: 'unreadable', message: 'The reader failed.' } as const },
    ]
    await pool.query(`alter table redrive_catalog.dead_letter add constraint dislike
      check (message not like '%does not like%')`)
    const all = [dead(), ...rejected, dead(), dead()]
    const options = { maxPayloadBytes: 99_999 }
    const source = new ListSource(all, name)
    const result = { added: 3, failedAgain: 0, known: 0, setAside: 5 }
    expect(await made.ingest(source, options)).toEqual(result)
    expect(source.released).toBe(8)
    const again = { added: 0, failedAgain: 0, known: 8, setAside: 0 }
    expect(await made.ingest(new ListSource(all, name), options)).toEqual(again)
    await pool.query('alter table redrive_catalog.dead_letter drop constraint dislike')
    const stored = await asideOf(name)
    const reasons = stored.map((one) => [one?.reason, one?.explanation])
    expect(reasons.sort((a, b) => (String(a) < String(b) ? -1 : 1))).toEqual([
      ['body_too_large', 'The body has 3000000 bytes, more than maxPayloadBytes (99999).'],
      ['headers_not_storable', 'The headers cannot be stored: a function cannot be stored.'],
      ['headers_not_storable', 'The headers cannot be stored: nested deeper than 64 levels.'],
      ['rejected_by_database', expect.stringContaining('The database rejected a value')],
      ['unreadable', 'The reader failed.'],
    ])
    const [large, deep, , disliked, unread] = rejected
    for (const one of [large, deep, disliked, unread] as DrainedDeadLetter[]) {
      const found = stored.find((some) => some?.messageId === one.delivery.id)
      expectSame(found?.drained, one)
      const hash = createHash('sha256').update(one.delivery.bytes).digest('hex')
      expect(found).toMatchObject({ isComplete: true, sha256: hash, status: 'open' })
    }
  })

  test('a message that makes the code of the catalog fail', async () => {
    const name = nameOf()
    const headers = Object.defineProperty({}, 'trap', {
      enumerable: true,
      get: () => {
        throw new TypeError('the trap closed')
      },
    })
    const source = new ListSource([dead(), dead({ delivery: { headers } }), dead()], name)
    expect(await made.ingest(source)).toMatchObject({ added: 2, setAside: 1 })
    const [one] = await asideOf(name)
    expect(one).toMatchObject({
      reason: 'unreadable',
      explanation: 'The message cannot be read: the trap closed.',
    })
  })

  test('messages that differ only in their headers are separate', async () => {
    const name = nameOf()
    const two = ['a', 'b'].map((trace) =>
      dead({ delivery: { id: 'same', bytes: Buffer.alloc(20), headers: { trace } } }),
    )
    const options = { maxPayloadBytes: 10 }
    expect(await made.ingest(new ListSource(two, name), options)).toMatchObject({ setAside: 2 })
    const traces = (await asideOf(name)).map((one) => one?.drained?.delivery.headers['trace'])
    expect(new Set(traces)).toEqual(new Set(['a', 'b']))
  })

  test('messages without a stable id: two with the same content are two, a redelivered one is known', async () => {
    const name = nameOf()
    const message = (identity: DrainedDeadLetter['identity']) =>
      dead({ identity, delivery: { bytes: Buffer.alloc(20), headers: { nested: nested(70) } } })
    const source = new ListSource([message('generated'), message('generated')], name)
    source.failingReleases = 1
    await refusal(made.ingest(source))
    await pool.query(`update redrive_catalog.unreleased set held_until = now() - interval '1 s'`)
    const again = ['generated_redelivered', 'generated_redelivered', 'generated'] as const
    const result = await made.ingest(new ListSource(again.map(message), name))
    expect(result).toEqual({ added: 0, failedAgain: 0, known: 2, setAside: 1 })
    expect(await asideOf(name)).toHaveLength(3)
    expect(await rows(pool, 'select * from redrive_catalog.unreleased')).toEqual([])
  })

  test('a body of many parts, encrypted', async () => {
    const name = nameOf()
    const key = randomBytes(32)
    const from = catalog({ pool, keys: { current: 'k', get: () => key } })
    const bytes = Buffer.concat([Buffer.from('secret'), randomBytes(2_200_000)])
    const came = dead({ delivery: { bytes, headers: { token: 'hush' } } })
    await from.ingest(new ListSource([came], name), { maxPayloadBytes: 1 })
    await expectWhole(name, [came], from)
    const [one] = (await from.setAside.list({ sources: [name] })).messages
    const parts = await rows<{ bytes: Buffer; wire: Buffer | null }>(
      pool,
      'select * from redrive_catalog.set_aside_payload where set_aside_id = $1',
      [one?.id],
    )
    expect(parts).toHaveLength(3)
    for (const part of parts) {
      expect(part.bytes.includes('secret')).toBe(false)
      expect(part.wire?.includes('hush') ?? false).toBe(false)
    }
    expect((await refusal(made.setAside.read(one?.id ?? ''))).message).toContain('the key "k"')
    expect(await made.setAside.get(one?.id ?? '')).toEqual(one)
  })
})

describe('list', () => {
  test('returns pages, newest first, of the named sources and statuses', async () => {
    const name = nameOf()
    const letters = Array.from({ length: 7 }, () => dead())
    for (const letter of letters)
      await made.ingest(new ListSource([letter], name), { maxPayloadBytes: 1 })
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const query = { sources: [name], limit: 3, ...(cursor === undefined ? {} : { cursor }) }
      const page = await made.setAside.list(query)
      seen.push(...page.messages.map(({ messageId }) => messageId))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual(letters.map(({ delivery }) => delivery.id).reverse())
    const discarded = await made.setAside.list({ sources: [name], statuses: ['discarded'] })
    expect(discarded.messages).toEqual([])
    expect((await refusal(made.setAside.list({ limit: 0 }))).message).toContain('1 to 200')
  })
})

describe('changes', () => {
  /** Sets one message aside and returns its id. */
  async function one(name = nameOf()): Promise<string> {
    await made.ingest(new ListSource([dead()], name), { maxPayloadBytes: 1 })
    const { messages } = await made.setAside.list({ sources: [name] })
    return messages[0]?.id ?? ''
  }
  const statusOf = async (id: string) => (await made.setAside.get(id))?.status

  test('a replay needs a request and the approval of another person', async () => {
    const id = await one()
    expect(await made.setAside.approve([id], { by: 'bob' })).toEqual({ changed: 0, skipped: [id] })
    expect(await made.setAside.requestReplay([id], { by: 'ada' })).toMatchObject({ changed: 1 })
    const error = await refusal(made.setAside.approve([id], { by: 'ada' }))
    expect(error).toMatchObject({ code: 'NEEDS_ANOTHER_PERSON' })
    expect(await made.setAside.get(id)).toMatchObject({ status: 'requested', requestedBy: 'ada' })
    expect(await made.setAside.approve([id], { by: 'bob' })).toMatchObject({ changed: 1 })
    expect(await statusOf(id)).toBe('replaying')
    expect(await made.setAside.discard([id], { by: 'ada' })).toEqual({ changed: 0, skipped: [id] })
  })

  test('an approval is for the headers that the approver has seen', async () => {
    const id = await one()
    const withoutHeaders = ['signature', 'tenant']
    const approve = (...names: readonly string[]) =>
      made.setAside.approve([id], { by: 'bob', withoutHeaders: names })
    await made.setAside.requestReplay([id], { by: 'ada' })
    // While Bob reviews the request, Ada changes it.
    await made.setAside.reopen([id], { by: 'ada' })
    await made.setAside.requestReplay([id], { by: 'ada', withoutHeaders })
    expect(await made.setAside.approve([id], { by: 'bob' })).toEqual({ changed: 0, skipped: [id] })
    expect(await approve('signature')).toEqual({ changed: 0, skipped: [id] })
    expect(await approve('signature', 'tenant', 'trace')).toEqual({ changed: 0, skipped: [id] })
    expect(await statusOf(id)).toBe('requested')
    expect(await approve('tenant', 'signature')).toEqual({ changed: 1, skipped: [] })
    expect(await made.setAside.get(id)).toMatchObject({ status: 'replaying', withoutHeaders })
  })

  test('a discarded message stays discarded when it is ingested again, and can be opened again', async () => {
    const letter = dead()
    const name = nameOf()
    const ingest = () => made.ingest(new ListSource([letter], name), { maxPayloadBytes: 1 })
    await ingest()
    const [id] = (await made.setAside.list({ sources: [name] })).messages.map((found) => found.id)
    await made.setAside.discard([id ?? ''], { by: 'ada' })
    expect(await ingest()).toMatchObject({ known: 1, setAside: 0 })
    expect(await statusOf(id ?? '')).toBe('discarded')
    expect(await made.setAside.reopen([id ?? ''], { by: 'ada' })).toMatchObject({ changed: 1 })
    expect(await statusOf(id ?? '')).toBe('open')
  })

  test('a replayed message that comes back is open again', async () => {
    const letter = dead()
    const name = nameOf()
    const ingest = () => made.ingest(new ListSource([letter], name), { maxPayloadBytes: 1 })
    await ingest()
    await pool.query(`update redrive_catalog.set_aside set status = 'replayed'
      where message_id = '${letter.delivery.id}'`)
    expect(await ingest()).toMatchObject({ known: 0, setAside: 1 })
    await expectWhole(name, [letter])
  })

  /** A source that records what it publishes. */
  class PublishingSource extends ListSource {
    readonly published: ReplayMessage[] = []
    problem: Error | undefined

    override async publish(replay?: ReplayMessage): Promise<void> {
      if (this.problem !== undefined) throw this.problem
      if (replay !== undefined) this.published.push(replay)
    }
  }

  /** Sets a message aside and approves its replay. */
  async function approved(letter = dead(), withoutHeaders: readonly string[] = []) {
    const source = new PublishingSource([letter], nameOf())
    await made.ingest(source, { maxPayloadBytes: 1 })
    const { messages } = await made.setAside.list({ sources: [source.source] })
    const [id = ''] = messages.map((found) => found.id)
    await made.setAside.requestReplay([id], { by: 'ada', withoutHeaders })
    await made.setAside.approve([id], { by: 'bob', withoutHeaders })
    return { id, source, letter }
  }

  test('an approved message is published once, unchanged', async () => {
    const { id, source, letter } = await approved(dead({ delivery: { headers: { a: 'x' } } }))
    const replayers = [1, 2].map(() => made.replays.replayer({ sources: [{ source }] }))
    const results = await Promise.all(replayers.map((one) => one.publishSetAside(source.source)))
    expect(results.filter(Boolean)).toHaveLength(1)
    expect(source.published.map(({ replayId }) => replayId)).toEqual([id])
    expectSame(source.published[0]?.deadLetter, letter)
    expect(await statusOf(id)).toBe('replayed')
    expect(await replayers[0]?.publishSetAside(source.source)).toBe(false)
  })

  test('a replay leaves out the headers that its request names', async () => {
    const headers = { stack: 'x'.repeat(70_000), trace: 'a' }
    const { id, source } = await approved(dead({ delivery: { headers } }), ['stack'])
    expect((await made.setAside.get(id))?.withoutHeaders).toEqual(['stack'])
    await made.replays.replayer({ sources: [{ source }] }).publishSetAside(source.source)
    expect(source.published[0]?.deadLetter.delivery.headers).toEqual({ trace: 'a' })
    expect((await made.setAside.read(id))?.drained?.delivery.headers).toEqual(headers)
  })

  test('a rejected replay opens the message again, with the reason', async () => {
    const { id, source } = await approved()
    const replayer = made.replays.replayer({ sources: [{ source }] })
    source.problem = new Error('The headers are too large.')
    expect(await replayer.publishSetAside(source.source)).toBe(true)
    expect(await made.setAside.get(id)).toMatchObject({
      status: 'open',
      replayError: 'The headers are too large.',
    })
  })

  test.each([
    ['OUTCOME_UNKNOWN', 'The broker did not confirm it.'],
    ['UNREACHABLE', 'The broker is not connected.'],
  ] as const)('%s is reported, and published again with the same id', async (code, message) => {
    const { id, source } = await approved()
    const replayer = made.replays.replayer({ sources: [{ source }] })
    source.problem = new RedriveError(code, message)
    const error = await refusal(replayer.publishSetAside(source.source))
    expect(error).toMatchObject({ code })
    expect(await statusOf(id)).toBe('replaying')
    source.problem = undefined
    await replayer.publishSetAside(source.source)
    expect(source.published.map(({ replayId }) => replayId)).toEqual([id])
  })

  test('a message is published only to an allowed origin', async () => {
    const { id, source } = await approved()
    const from = catalog({ pool, origins: { [source.source]: ['billing'] } })
    const replayer = from.replays.replayer({ sources: [{ source }] })
    await replayer.publishSetAside(source.source)
    expect(source.published).toEqual([])
    const found = await made.setAside.get(id)
    expect(found?.status).toBe('open')
    expect(found?.replayError).toContain('The origin "orders" is not an allowed replay target')
  })

  test('counts and an alert show unsettled messages until they are settled', async () => {
    const name = nameOf()
    const id = await one(name)
    const seen = async () => {
      const counts = await made.counts()
      const alerts = alertsOf(counts).filter(({ source }) => source === name)
      return [counts.sources.find(({ source }) => source === name)?.setAside, alerts]
    }
    expect(await seen()).toEqual([1, [{ kind: 'set_aside', source: name, count: 1 }]])
    await made.setAside.discard([id], { by: 'ada' })
    expect(await seen()).toEqual([0, []])
  })

  test('maintenance deletes settled messages after the retention, and never unsettled ones', async () => {
    const name = nameOf()
    const [kept, discarded] = [await one(name), await one(name)]
    await made.setAside.discard([discarded], { by: 'ada' })
    await pool.query(
      `update redrive_catalog.set_aside set set_aside_at = now() - interval '15 days'`,
    )
    await made.maintain()
    expect(await statusOf(discarded)).toBe('discarded')
    await pool.query(
      `update redrive_catalog.set_aside set settled_at = settled_at - interval '15 days'`,
    )
    await made.maintain()
    expect(await made.setAside.read(discarded)).toBeUndefined()
    expect(await statusOf(kept)).toBe('open')
    const { rowCount } = await pool.query(
      'select from redrive_catalog.set_aside_payload where set_aside_id = $1',
      [discarded],
    )
    expect(rowCount).toBe(0)
  })

  test('reject ids that are none', async () => {
    const error = await refusal(made.setAside.discard(['x'], { by: '' }))
    expect(error.message).toContain('ids: expected 1 to 1000 ids')
    expect(error.message).toContain('by: expected the name of the user')
  })
})

test('a migration keeps the messages of ingest_quarantine', async () => {
  const old = poolOn(await emptyDatabase('redrive_catalog_set_aside_old'), 2)
  try {
    await old.query(`create schema redrive_catalog; ${TABLES}`)
    await old.query(
      `insert into redrive_catalog.source (name, retention) values ('orders', '1 day')`,
    )
    await old.query(
      `insert into redrive_catalog.ingest_quarantine (identity, source_id, reason, message_id, payload_bytes, sha256, head)
        values ($1, 1, 'the body has 70000 bytes, more than maxPayloadBytes (1)', 'm', 70000, $2, $3)`,
      [randomUUID(), randomBytes(32), Buffer.alloc(65_536, 7)],
    )
    await old.query(SET_ASIDE)
    const from = catalog({ pool: old })
    const { messages } = await from.setAside.list()
    expect(messages).toMatchObject([
      { source: 'orders', reason: 'body_too_large', payloadBytes: 70_000, isComplete: false },
    ])
    const read = await from.setAside.read(messages[0]?.id ?? '')
    expect(read?.drained).toBeUndefined()
    expect(Buffer.from(read?.bytes ?? []).equals(Buffer.alloc(65_536, 7))).toBe(true)
  } finally {
    await old.end()
  }
})

describe('the codec', () => {
  test('decodes every value that a broker can deliver', () => {
    const value = fc.anything({
      withBigInt: true,
      withDate: true,
      withTypedArray: false,
      withSparseArray: false,
      withNullPrototype: false,
    })
    fc.assert(
      fc.property(value, (one) => {
        expect(decodeAny(encodeAny(one))).toStrictEqual(one)
      }),
      { numRuns: 500 },
    )
  })

  test('keeps bytes, and values that contain themselves', () => {
    const value: Record<string, unknown> = { bytes: Buffer.from([0, 255]), none: undefined }
    value['self'] = [value]
    const decoded = decodeAny(encodeAny(value)) as typeof value
    expect(decoded['bytes']).toEqual(Buffer.from([0, 255]))
    expect(Object.keys(decoded)).toEqual(['bytes', 'none', 'self'])
    expect((decoded['self'] as unknown[])[0]).toBe(decoded)
  })
})
