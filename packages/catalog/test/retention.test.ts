import { describe, expect, test } from 'vitest'
import { alertsOf, catalog, type Status } from '../src/index.ts'
import { groupId } from '../src/ingest/identity.ts'
import { dead, ListSource, migrated, NOW, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_retention')
const made = catalog({ pool })
const BY = { by: 'ada' }
const DAY = 86_400_000
const SIGNATURE = '1-00000000000000aa'
const at = NOW - 40 * DAY
const day = new Date(at).toISOString().slice(0, 10)
const partition = `redrive_catalog.dead_letter_${day.replaceAll('-', '')}`

/** Adds dead letters to a separate source for the test; returns the group. */
async function filled(source: string, count: number, failedAt = at): Promise<string> {
  const all = Array.from({ length: count }, () => dead({ at: failedAt, signature: SIGNATURE }))
  await made.ingest(new ListSource(all, source), { extract: { order: '/order' } })
  return groupId(source, SIGNATURE)
}

const openOf = async (group: string) => (await made.group(group))?.openCount
const idsOf = async (group: string, status: Status = 'open') =>
  (await made.deadLetters({ groups: [group], statuses: [status], limit: 200 })).deadLetters.map(
    ({ id }) => id,
  )

/** Moves the ingest and all changes of status of a source into the past. */
const age = (source: string, ms: number) =>
  pool.query(
    `with letters as (
        update redrive_catalog.dead_letter d set ingested_at = now() - $2 * interval '1 millisecond',
            settled_at = case when settled_at is not null then now() - $2 * interval '1 millisecond' end
          from redrive_catalog.source s where s.id = d.source_id and s.name = $1)
      update redrive_catalog.source_day d set last_ingested_at = now() - $2 * interval '1 millisecond'
        from redrive_catalog.source s where s.id = d.source_id and s.name = $1`,
    [source, ms],
  )

const isThere = async () =>
  (await rows<{ is: boolean }>(pool, 'select to_regclass($1) is not null as is', [partition]))[0]
    ?.is
const recorded = (source: string) =>
  rows(
    pool,
    `select d.day::text, d.count::integer, d.expired, d.expired_at is not null as is_expired
      from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id where s.name = $1`,
    [source],
  )
const expiringOf = async (source: string) =>
  (await made.counts()).sources.find((one) => one.source === source)

const expectNoOrphans = async () => {
  for (const table of ['dead_letter_payload', 'dead_letter_lookup']) {
    const orphans = await rows(
      pool,
      `select from redrive_catalog.${table} p
        where not exists (select from redrive_catalog.dead_letter d where d.id = p.dead_letter_id)`,
    )
    expect(orphans).toEqual([])
  }
}

/** Deletes the rows of a test, so that they do not keep the day that all tests share. */
const emptied = async (...sources: readonly string[]) => {
  for (const source of sources) await age(source, 3_700 * DAY)
  await made.maintain()
  await made.maintain()
}

describe('retention', () => {
  test('keeps open dead letters after settled ones are deleted, and drops the day at their end', async () => {
    const group = await filled('short', 4)
    const other = await filled('long', 3)
    await made.ingest(new ListSource([], 'long'), { retention: '60d' })
    await made.discard({ ids: (await idsOf(group)).slice(0, 1) }, BY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })

    await Promise.all([age('short', 15 * DAY), age('long', 15 * DAY)])
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 1 })
    expect(await recorded('short')).toMatchObject([
      { day, count: 4, expired: { discarded: 1 }, is_expired: false },
    ])
    expect([await openOf(group), await openOf(other)]).toEqual([3, 3])
    await expectNoOrphans()

    await age('short', 91 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 3 })
    expect(await recorded('short')).toEqual([
      { day, count: 4, expired: { open: 3, discarded: 1 }, is_expired: true },
    ])
    expect(await openOf(group)).toBe(0)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })

    await age('long', 91 * DAY)
    expect(await isThere()).toBe(true)
    expect(await made.maintain()).toMatchObject({ dropped: 1, deleted: 0 })
    expect(await isThere()).toBe(false)
    expect(await openOf(other)).toBe(0)
    expect(await recorded('long')).toEqual([
      { day, count: 3, expired: { open: 3 }, is_expired: true },
    ])
    await expectNoOrphans()
  })

  test('keeps a dead letter with an unknown outcome as long as an open one', async () => {
    const group = await filled('undecided', 2)
    await pool.query(
      `update redrive_catalog.dead_letter set status = 'unknown' where group_id = $1`,
      [group],
    )
    await age('undecided', 89 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })
    expect(await idsOf(group, 'unknown')).toHaveLength(2)
    await age('undecided', 91 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 1 })
  })

  test('counts from the last change of status, so that a discard can be undone and an undo lasts', async () => {
    const group = await filled('undone', 3)
    await age('undone', 60 * DAY)
    const [one = '', two = ''] = await idsOf(group)
    await made.discard({ ids: [one, two] }, BY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })
    await age('undone', 91 * DAY)
    await made.restore({ ids: [one] }, BY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 2 })
    expect(await idsOf(group)).toEqual([one])
    await age('undone', 91 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 1 })
  })

  test('never keeps open dead letters shorter than settled ones', async () => {
    const group = await filled('reversed', 1)
    await made.ingest(new ListSource([], 'reversed'), { retention: '180d', openRetention: '30d' })
    await age('reversed', 170 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })
    expect(await idsOf(group)).toHaveLength(1)
    await emptied('reversed')
  })

  test('reports what expires within 7 days, until it is settled or deleted', async () => {
    const group = await filled('noticed', 3)
    await age('noticed', 80 * DAY)
    await made.maintain()
    expect(await expiringOf('noticed')).toMatchObject({ expiring: 0, nextExpiryAt: undefined })

    await age('noticed', 84 * DAY)
    await made.maintain()
    const counts = await made.counts()
    const { expiring, nextExpiryAt = 0 } = (await expiringOf('noticed')) ?? {}
    expect(expiring).toBe(3)
    expect(Math.abs(nextExpiryAt - counts.at - 6 * DAY)).toBeLessThan(60_000)
    expect(alertsOf(counts)).toContainEqual({
      kind: 'expiring',
      source: 'noticed',
      expiring: 3,
      nextExpiryAt,
    })

    await made.discard({ ids: (await idsOf(group)).slice(0, 1) }, BY)
    await made.maintain()
    expect(await expiringOf('noticed')).toMatchObject({ expiring: 2 })
    await emptied('noticed')
    expect(await expiringOf('noticed')).toMatchObject({ expiring: 0, nextExpiryAt: undefined })
  })

  test('returns how many expired, by source, day and status, in pages', async () => {
    await filled('gone.a', 2)
    const group = await filled('gone.b', 3)
    await made.discard({ ids: (await idsOf(group)).slice(0, 1) }, BY)
    await emptied('gone.a', 'gone.b')
    const sources = ['gone.a', 'gone.b']
    const first = await made.expired({ sources, limit: 1 })
    expect(first).toMatchObject({
      days: [{ source: 'gone.b', day, byStatus: { open: 2, discarded: 1 } }],
      nextCursor: `${day}_gone.b`,
    })
    const second = await made.expired({ sources, limit: 1, cursor: first.nextCursor ?? '' })
    expect(second).toMatchObject({ days: [{ source: 'gone.a', day, byStatus: { open: 2 } }] })
    expect(second.nextCursor).toBeUndefined()
    await expect(made.expired({ cursor: 'x' })).rejects.toThrow('expected "nextCursor"')
  })

  test('skips a locked day, and drops it in the next call', async () => {
    await filled('busy', 1)
    await age('busy', 91 * DAY)
    const client = await pool.connect()
    await client.query(`begin; lock table ${partition} in row exclusive mode`)
    expect(await made.maintain()).toMatchObject({ dropped: 0 })
    await client.query('rollback')
    client.release()
    // The first call has deleted the only row. The empty day is dropped now.
    expect(await made.maintain()).toMatchObject({ dropped: 1 })
    expect(await isThere()).toBe(false)
  })

  test('keeps dead letters that arrive during a deletion until their own retention ends', async () => {
    await filled('keeper', 1)
    const group = await filled('late', 3)
    await age('late', 91 * DAY)
    await filled('late', 1)
    const deleted = async (most: number) => {
      const text = `select redrive_catalog.delete_some(id, $1, $2) as count from redrive_catalog.source where name = 'late'`
      return (await rows(pool, text, [day, most]))[0]?.['count']
    }
    expect([await deleted(2), await deleted(2)]).toEqual([2, 1])
    expect(await idsOf(group)).toHaveLength(1)
    expect(await recorded('late')).toMatchObject([{ is_expired: false, expired: { open: 3 } }])
    await age('late', 91 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 1 })
    expect(await idsOf(group)).toEqual([])
    expect(await recorded('late')).toMatchObject([{ is_expired: true, expired: { open: 4 } }])
    await emptied('keeper')
  })

  test('continues with a day after it has deleted the maximum number of rows', async () => {
    await filled('keeper2', 1)
    const group = await filled('much', 3)
    await age('much', 91 * DAY)
    await pool.query(
      `select redrive_catalog.delete_some(id, $1, 2) from redrive_catalog.source where name = 'much'`,
      [day],
    )
    expect(await made.maintain()).toMatchObject({ deleted: 1 })
    expect(await idsOf(group)).toEqual([])
    await emptied('keeper2')
  })

  test('also deletes dead letters of a day without a partition', async () => {
    const group = await filled('stray', 3, NOW - 3_000 * DAY)
    await age('stray', 91 * DAY)
    expect((await made.maintain()).deleted).toBeGreaterThanOrEqual(3)
    expect(await idsOf(group)).toEqual([])
    expect(await made.group(group)).toBeUndefined()
  })
})

describe('retention of groups', () => {
  const groupCount = async (source: string) =>
    (
      await rows<{ count: number }>(
        pool,
        `select count(*)::integer as count from redrive_catalog.failure_group g
          join redrive_catalog.source s on s.id = g.source_id where s.name = $1`,
        [source],
      )
    )[0]?.count
  const signatureOf = (at: number) => `1-${at.toString(16).padStart(16, '0')}`

  test('makes room in a source that has reached the limit of groups', async () => {
    const failedAt = NOW - 20 * DAY
    const all = Array.from({ length: 10_001 }, (_, place) =>
      dead({ at: failedAt, signature: signatureOf(place + 1_000) }),
    )
    await made.ingest(new ListSource(all, 'full'), { retention: '1d', openRetention: '1d' })
    expect(await groupCount('full')).toBe(10_001)
    await age('full', 20 * DAY)
    const before = await expiringOf('full')
    await made.maintain()
    expect(await groupCount('full')).toBeLessThan(5_000)
    const fresh = dead({ signature: signatureOf(1), message: 'connect ECONNREFUSED' })
    await made.ingest(new ListSource([fresh], 'full'))
    expect(await made.group(groupId('full', signatureOf(1)))).toMatchObject({ openCount: 1 })
    // Totals over all time do not decrease.
    expect(before?.count).toBe(10_001)
    expect(await expiringOf('full')).toMatchObject({ count: 10_002, open: 1 })
  })

  test('keeps groups that users have touched, have dead letters, or failed lately', async () => {
    const failedAt = NOW - 200 * DAY
    const names = ['plain', 'owned', 'muted', 'resolved', 'commented', 'filled', 'recent']
    const ids = names.map((_, place) => groupId('touched', signatureOf(place)))
    const letters = names.map((name, place) =>
      dead({ at: name === 'recent' ? at : failedAt, signature: signatureOf(place) }),
    )
    await made.ingest(new ListSource(letters, 'touched'))
    const [, owned = '', muted = '', resolved = '', commented = '', filledGroup = ''] = ids
    await made.assignGroup(owned, 'ada')
    await made.muteGroup(muted)
    await made.resolveGroup(resolved)
    await made.comment(commented, { author: 'ada', text: 'known' })
    await age('touched', 91 * DAY)
    await pool.query(
      `update redrive_catalog.dead_letter set ingested_at = now() where group_id = $1`,
      [filledGroup],
    )
    expect(await made.maintain()).toMatchObject({ groups: 1 })
    const left = await Promise.all(ids.map((id) => made.group(id)))
    expect(names.filter((_, place) => left[place] !== undefined)).toEqual(names.slice(1))
    expect(await made.comments(commented)).toHaveLength(1)
  })

  test('waits for an ingest in progress, which can use a group that was about to be deleted', async () => {
    await filled('raced', 1, NOW - 200 * DAY)
    await age('raced', 91 * DAY)
    const [{ id: sourceId } = { id: 0 }] = await rows<{ id: number }>(
      pool,
      `select id from redrive_catalog.source where name = 'raced'`,
    )
    const client = await pool.connect()
    await client.query('begin')
    await client.query('select redrive_catalog.begin_ingest($1)', [sourceId])
    const maintained = made.maintain()
    const waits = `select from pg_locks where locktype = 'advisory' and not granted`
    await expect.poll(async () => (await rows(pool, waits)).length).toBe(1)
    await client.query(
      `update redrive_catalog.failure_group set last_seen_at = now(), open_count = open_count + 1 where source_id = $1`,
      [sourceId],
    )
    await client.query('commit')
    client.release()
    expect(await maintained).toMatchObject({ groups: 0 })
    expect(await groupCount('raced')).toBe(1)
  })
})
