import { describe, expect, test } from 'vitest'
import { catalog, type DeadLetterQuery } from '../src/index.ts'
import { groupId } from '../src/ingest/identity.ts'
import { dead, ListSource, migrated, NOW, refusal } from './rig.ts'

const pool = await migrated('redrive_catalog_read')
const made = catalog({ pool })
const HOUR = 3_600_000

const ORDERS = Array.from({ length: 60 }, (_, at) =>
  dead({
    signature: `1-${String(at % 3).padStart(16, '0')}`,
    message: `order ${at} failed with 100% of _ ${['declined', 'timeout', 'empty'][at % 3]}`,
    class: at % 3 === 1 ? 'transient' : 'business',
    code: at % 3 === 1 ? 'ETIMEDOUT' : undefined,
    // Several with the same timestamp, and over several days.
    at: NOW - 10 * HOUR * (at >> 2),
    quarantined: at % 10 === 0,
    attempts: at,
    delivery: {
      id: `order-${at}`,
      lane: `lane-${at % 4}`,
      type: at % 2 === 0 ? 'order.placed' : 'order.paid',
      headers: { tenant: `t${at % 5}`, 'odd"name': "it's" },
      bytes: Buffer.from(
        JSON.stringify({ order: { id: at, tags: ['a', 'b'] }, vip: at % 2 === 0, none: null }),
      ),
    },
  } as Parameters<typeof dead>[0]),
)
const PARCELS = Array.from({ length: 10 }, (_, at) =>
  dead({ signature: '1-0000000000000000', at: NOW - at * 1_000, delivery: { id: `parcel-${at}` } }),
)
await made.ingest(new ListSource(ORDERS), {
  handler: 'charge',
  batch: 17,
  extract: {
    order: '/order/id',
    vip: '/vip',
    tags: '/order/tags',
    proto: '/__proto__',
    missing: '/a/b',
  },
})
await made.ingest(new ListSource(PARCELS, 'parcels'))
const SLOW = dead({ at: NOW - 3_000 * HOUR, lastAt: NOW - 2_000 * HOUR, delivery: { id: 'slow' } })
await made.ingest(new ListSource([SLOW], 'slow'))
const SLOW_GROUP = groupId('slow', '1-00000000000000aa')
await made.discard({ group: SLOW_GROUP }, { by: 'test' })

const LONG_AGO = NOW - 1_000 * HOUR
const GROUPS = [0, 1, 2].map((n) => groupId('orders', `1-${String(n).padStart(16, '0')}`))

async function ids(query: DeadLetterQuery): Promise<readonly string[]> {
  const { deadLetters } = await made.deadLetters({ limit: 200, ...query })
  return deadLetters.map(({ messageId }) => messageId)
}

const orders = (isFit: (at: number) => boolean) =>
  Array.from({ length: 60 }, (_, at) => at)
    .filter(isFit)
    .map((at) => `order-${at}`)

describe('a list', () => {
  test('has pages without repeated or missing rows, newest last failure first', async () => {
    const seen: { id: string; at: number }[] = []
    let next: string | undefined
    do {
      const page = await made.deadLetters({
        after: LONG_AGO,
        limit: 7,
        ...(next === undefined ? {} : { cursor: next }),
      })
      seen.push(...page.deadLetters.map(({ id, lastFailedAt }) => ({ id, at: lastFailedAt })))
      next = page.nextCursor
    } while (next !== undefined)
    expect(seen).toHaveLength(70)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(70)
    expect(seen.map(({ at }) => at)).toEqual(
      seen.map(({ at }) => at).toSorted((one, other) => other - one),
    )
  })

  test.each<[string, DeadLetterQuery, (at: number) => boolean]>([
    ['group', { groups: [GROUPS[1] as string] }, (at) => at % 3 === 1],
    ['several groups', { groups: GROUPS.slice(1) }, (at) => at % 3 !== 0],
    ['source', { after: LONG_AGO, sources: ['orders'] }, () => true],
    ['handler', { after: LONG_AGO, handler: 'charge' }, () => true],
    ['class', { after: LONG_AGO, class: 'transient' }, (at) => at % 3 === 1],
    ['code', { after: LONG_AGO, code: 'ETIMEDOUT' }, (at) => at % 3 === 1],
    ['type', { after: LONG_AGO, type: 'order.paid' }, (at) => at % 2 === 1],
    ['quarantine', { after: LONG_AGO, quarantined: true }, (at) => at % 10 === 0],
    [
      'time',
      { after: NOW - 50 * HOUR, before: NOW - 20 * HOUR, sources: ['orders'] },
      (at) => [3, 4, 5].includes(at >> 2),
    ],
    ['key', { key: 'order-7' }, (at) => at === 7],
    ['key and group', { key: 'order-7', groups: [GROUPS[0] as string] }, () => false],
    ['extracted value', { extracted: { order: '7' } }, (at) => at === 7],
    ['extracted values', { extracted: { vip: 'true', order: '8' } }, (at) => at === 8],
    [
      'extracted values that exclude each other',
      { extracted: { vip: 'true', order: '7' } },
      () => false,
    ],
    [
      'extracted value and more',
      {
        extracted: { vip: 'false' },
        groups: [GROUPS[1] as string],
        type: 'order.paid',
        texts: ['order 1'],
      },
      (at) => at % 6 === 1 && String(at).startsWith('1'),
    ],
    [
      'extracted value of another source',
      { extracted: { order: '7' }, sources: ['parcels'] },
      () => false,
    ],
    ['list that is compared as a value', { extracted: { tags: 'a,b' } }, () => false],
    ['header', { after: LONG_AGO, headers: { tenant: 't2' } }, (at) => at % 5 === 2],
    [
      'headers',
      { after: LONG_AGO, headers: { tenant: 't2', 'odd"name': "it's" } },
      (at) => at % 5 === 2,
    ],
    ['number in the body', { groups: GROUPS, json: { '/order/id': 9 } }, (at) => at === 9],
    [
      'truth in the body',
      { groups: GROUPS, json: { '/vip': true, '/none': null } },
      (at) => at % 2 === 0,
    ],
    ['item of a list in the body', { groups: GROUPS, json: { '/order/tags/1': 'b' } }, () => true],
    [
      'text of the wrong type in the body',
      { groups: GROUPS, json: { '/order/id': '9' } },
      () => false,
    ],
    [
      'text of groups',
      { after: LONG_AGO, texts: ['DECLINED'], sources: ['orders'] },
      (at) => at % 3 === 0,
    ],
    ['text inside a group', { groups: GROUPS, texts: ['order 11 f'] }, (at) => at === 11],
    [
      'text with characters of patterns',
      { groups: GROUPS, texts: ['0% of _ t'] },
      (at) => at % 3 === 1,
    ],
    [
      'several texts',
      { after: LONG_AGO, sources: ['orders'], texts: ['ORDER 1', 'timeout'] },
      (at) => String(at).startsWith('1') && at % 3 === 1,
    ],
    ['message id', { messageId: 'order-7' }, (at) => at === 7],
    ['message id and class', { messageId: 'order-7', class: 'business' }, () => false],
    ['message id and key', { messageId: 'order-7', key: 'order-8' }, () => false],
    ['lane', { after: LONG_AGO, lane: 'lane-3', sources: ['orders'] }, (at) => at % 4 === 3],
    ['minimum of attempts', { after: LONG_AGO, attempts: { from: 50 } }, (at) => at >= 50],
    ['maximum of attempts', { groups: GROUPS, attempts: { to: 4 } }, (at) => at <= 4],
    [
      'range of attempts',
      { groups: GROUPS, attempts: { from: 7, to: 9 } },
      (at) => at > 6 && at < 10,
    ],
    [
      'time of the first failure',
      { firstAfter: NOW - 50 * HOUR, firstBefore: NOW - 20 * HOUR, sources: ['orders'] },
      (at) => [3, 4, 5].includes(at >> 2),
    ],
    ['text that would be a pattern', { groups: GROUPS, texts: ['order % failed'] }, () => false],
    ['text that would be SQL', { groups: GROUPS, texts: ["'; drop table x; --"] }, () => false],
    ['status', { after: LONG_AGO, statuses: ['resolved', 'discarded'] }, () => false],
    [
      'all statuses',
      { after: LONG_AGO, sources: ['orders'], statuses: ['resolved', 'open', 'expired'] },
      () => true,
    ],
  ])('by %s', async (_, query, isFit) => {
    expect([...(await ids(query))].sort()).toEqual([...orders(isFit)].sort())
  })

  test('finds a dead letter by the time of its last failure', async () => {
    const slow = { sources: ['slow'], statuses: ['discarded'] } as const
    expect(await ids({ ...slow, after: NOW - 3_001 * HOUR, before: NOW - 2_500 * HOUR })).toEqual(
      [],
    )
    expect(await ids({ ...slow, after: NOW - 2_500 * HOUR, before: NOW - 1_000 * HOUR })).toEqual([
      'slow',
    ])
  })

  test('finds a dead letter by the time of its first failure', async () => {
    const slow = { sources: ['slow'], statuses: ['discarded'] } as const
    const between = (from: number, to: number) =>
      ids({ ...slow, firstAfter: NOW - from * HOUR, firstBefore: NOW - to * HOUR })
    expect(await between(3_001, 2_999)).toEqual(['slow'])
    expect(await between(2_999, 1_000)).toEqual([])
    expect(await ids({ ...slow, after: 0, firstBefore: NOW - 3_001 * HOUR })).toEqual([])
  })

  test('rejects times that the database cannot store', async () => {
    for (const field of ['after', 'before', 'firstAfter', 'firstBefore']) {
      for (const at of [-1e15, -8.64e15, 9e15, Number.NaN, Number.POSITIVE_INFINITY]) {
        const { message } = await refusal(made.deadLetters({ after: 0, [field]: at }))
        expect(message).toContain(`${field}: expected a timestamp in epoch ms`)
      }
      for (const at of [-6e13, 8.64e15]) {
        await expect(made.deadLetters({ after: 0, [field]: at })).resolves.toBeDefined()
      }
    }
    const cursor = '9999999999999999_00000000-0000-0000-0000-000000000000'
    expect((await refusal(made.deadLetters({ after: 0, cursor }))).message).toContain('cursor')
  })

  test('rejects an unbounded or invalid query with all reasons', async () => {
    expect((await refusal(made.deadLetters({ class: 'schema' }))).message).toContain(
      'one of "groups", "key", "messageId", "extracted", "after" and "firstAfter" is required',
    )
    const odd = {
      groups: ['x'],
      after: Number.NaN,
      statuses: ['gone'],
      headers: { a: 1 },
      json: { order: 1 },
      attempts: { from: 5, to: 3 },
      lane: '',
      limit: 1_000,
      texts: ['a\0'],
      sql: 'select 1',
    }
    const { message } = await refusal(made.deadLetters(odd as unknown as DeadLetterQuery))
    for (const name of Object.keys(odd)) expect(message).toContain(`${name}:`)
    expect((await refusal(made.deadLetters({ after: 0, cursor: '1; select' }))).message).toContain(
      'cursor',
    )
  })

  test('cancels a query that takes too long, and explains how to narrow it', async () => {
    const slow = catalog({ pool, searchTimeout: '100ms' })
    const client = await pool.connect()
    await client.query('begin; lock table redrive_catalog.dead_letter in access exclusive mode')
    const error = await refusal(slow.deadLetters({ after: LONG_AGO }))
    await client.query('rollback')
    client.release()
    expect(error.message).toContain('Narrow it')
    expect((await slow.deadLetters({ after: LONG_AGO })).deadLetters).toHaveLength(50)
  })

  test('reads no more rows than one page, in a group and in a source', async () => {
    const { compileDeadLetters } = await import('../src/read/compile.ts')
    const explain = async (query: DeadLetterQuery) => {
      const { text, values } = compileDeadLetters(query)
      const client = await pool.connect()
      await client.query('begin; set local enable_seqscan = off; set local enable_bitmapscan = off')
      const { rows: plan } = await client.query(`explain ${text}`, [...values])
      await client.query('rollback')
      client.release()
      return JSON.stringify(plan)
    }
    const group = await explain({ groups: [GROUPS[0] as string], limit: 5 })
    expect(group).toContain('group_id_status_last_failed_at_id_idx')
    expect(group).not.toContain('Seq Scan on dead_letter')
    const source = await explain({ after: LONG_AGO, limit: 5 })
    expect(source).toContain('source_id_status_last_failed_at_id_idx')
  })

  test('returns undefined for ids that do not exist', async () => {
    expect(await made.deadLetter('no id')).toBeUndefined()
    expect(await made.deadLetter('00000000-0000-0000-0000-000000000000')).toBeUndefined()
    expect(await made.group('no id')).toBeUndefined()
    expect(await made.whyGrouped('00000000-0000-0000-0000-000000000000')).toBeUndefined()
  })
})

describe('groups', () => {
  test('have counts, times and an explanation', async () => {
    const { groups } = await made.groups({ sources: ['orders'] })
    expect(groups).toHaveLength(3)
    const timeout = groups.find(({ code }) => code === 'ETIMEDOUT')
    expect(timeout).toMatchObject({
      id: GROUPS[1],
      handler: 'charge',
      class: 'transient',
      count: 20,
      openCount: 20,
      attempts: 590,
      state: 'open',
      regressed: false,
      title: 'order <v> failed with <v> of _ timeout',
      firstSeenAt: NOW - 140 * HOUR,
      lastSeenAt: NOW,
    })
    const why = await made.whyGrouped(GROUPS[1] as string)
    expect(why?.sample).toMatch(/^order \d+ failed/)
    expect(why).toEqual({
      signature: '1-0000000000000001',
      algorithm: 1,
      shared: {
        source: 'orders',
        class: 'transient',
        code: 'ETIMEDOUT',
        type: 'CardDeclined',
        handler: 'charge',
        frame: undefined,
        message: timeout?.title,
      },
      unknown: [],
      sample: why?.sample,
    })
  })

  test('have pages in the requested order', async () => {
    for (const order of ['last_seen', 'open_count', 'count'] as const) {
      const seen: string[] = []
      let next: string | undefined
      do {
        const page = await made.groups({
          order,
          limit: 1,
          ...(next === undefined ? {} : { cursor: next }),
        })
        seen.push(...page.groups.map(({ id }) => id))
        next = page.nextCursor
      } while (next !== undefined)
      expect(new Set(seen).size).toBe(5)
      expect(seen).toHaveLength(5)
    }
    expect((await made.groups({ order: 'count', limit: 1 })).groups[0]?.count).toBe(20)
  })

  test('are found by class, text and state', async () => {
    const found = async (query: Parameters<typeof made.groups>[0]) =>
      (await made.groups(query)).groups.map(({ id }) => id)
    expect(await found({ class: 'transient' })).toEqual([GROUPS[1]])
    expect(await found({ text: 'EMPTY' })).toEqual([GROUPS[2]])
    expect(await found({ states: ['muted', 'resolved'] })).toEqual([])
    expect(await found({ hasOpen: false })).toEqual([SLOW_GROUP])
    expect(await found({ regressed: false, handler: 'charge' })).toHaveLength(3)
    expect((await refusal(made.groups({ order: 'title' as 'count' }))).message).toContain('order:')
  })
})

describe('a trend', () => {
  test('sums up to the number of dead letters, by minute and by hour', async () => {
    const sum = (points: readonly { count: number }[]) =>
      points.reduce((all, { count }) => all + count, 0)
    const hours = await made.trend({ per: 'hour', after: NOW - 500 * HOUR, before: NOW + HOUR })
    expect(sum(hours)).toBe(70)
    const some = { per: 'minute', after: NOW - 11 * HOUR, before: NOW + 60_000 } as const
    const minutes = await made.trend({ ...some, groups: [GROUPS[0] as string] })
    expect(minutes).toEqual([
      { at: NOW - 10 * HOUR, count: 1 },
      { at: NOW, count: 2 },
    ])
    expect(sum(await made.trend({ ...some, sources: ['parcels'] }))).toBe(10)
    expect((await refusal(made.trend({ per: 'minute', after: 0, before: NOW }))).message).toContain(
      'at most 1500 minutes or hours',
    )
  })
})
