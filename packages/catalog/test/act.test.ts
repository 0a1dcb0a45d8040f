import { describe, expect, test } from 'vitest'
import { alertsOf, catalog, metricsOf, type Selection } from '../src/index.ts'
import { groupId } from '../src/ingest/identity.ts'
import { dead, ListSource, migrated, NOW, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_act')
const made = catalog({ pool })
const BY = { by: 'ada' }
const DAY = 86_400_000
const SIGNATURE = '1-00000000000000aa'

/** Adds dead letters to a separate source for the test; returns the group. */
async function filled(source: string, count: number, at = NOW): Promise<string> {
  const all = Array.from({ length: count }, () => dead({ at, signature: SIGNATURE }))
  await made.ingest(new ListSource(all, source), { extract: { order: '/order' } })
  return groupId(source, SIGNATURE)
}

const openOf = async (group: string) => (await made.group(group))?.openCount
const idsOf = async (group: string, status: 'open' | 'discarded' = 'open') =>
  (await made.deadLetters({ groups: [group], statuses: [status], limit: 200 })).deadLetters.map(
    ({ id }) => id,
  )

/** Moves the ingest time of all dead letters of the source into the past. */
const age = (source: string, ms: number) =>
  pool.query(
    `with letters as (
        update redrive_catalog.dead_letter d set ingested_at = now() - $2 * interval '1 millisecond'
          from redrive_catalog.source s where s.id = d.source_id and s.name = $1)
      update redrive_catalog.source_day d set last_ingested_at = now() - $2 * interval '1 millisecond'
        from redrive_catalog.source s where s.id = d.source_id and s.name = $1`,
    [source, ms],
  )

describe('discard and restore', () => {
  test('change open dead letters only, update the counts and record the user', async () => {
    const group = await filled('a', 5)
    const [one = '', two = ''] = await idsOf(group)
    const missing = '00000000-0000-0000-0000-000000000000'
    expect(await made.discard({ ids: [one, missing] }, BY)).toEqual({
      changed: 1,
      skipped: [missing],
    })
    expect(await made.discard({ ids: [one, two] }, BY)).toEqual({ changed: 1, skipped: [one] })
    expect(await openOf(group)).toBe(3)
    expect(await idsOf(group)).toHaveLength(3)
    expect(await made.deadLetter(one)).toMatchObject({
      status: 'discarded',
      version: 1,
      settledBy: 'ada',
    })
    expect(await made.restore({ ids: [one, two] }, BY)).toEqual({ changed: 2, skipped: [] })
    expect(await openOf(group)).toBe(5)
    expect(await made.deadLetter(one)).toMatchObject({ status: 'open', version: 2 })
  })

  test('change a whole group that needs several transactions', async () => {
    const group = await filled('b', 2_050)
    expect(await made.discard({ group }, BY)).toEqual({ changed: 2_050, skipped: [] })
    expect(await openOf(group)).toBe(0)
    expect(await idsOf(group)).toEqual([])
    expect(await made.restore({ group }, BY)).toEqual({ changed: 2_050, skipped: [] })
    expect(await openOf(group)).toBe(2_050)
  })

  test('keep correct counts when two users and an ingest run at the same time', async () => {
    const group = await filled('c', 300)
    const ids = await idsOf(group)
    await Promise.all([
      made.discard({ ids }, BY),
      made.discard({ ids: ids.toReversed() }, { by: 'bob' }),
      filled('c', 100),
      made.discard({ group }, BY),
    ])
    const [row] = await rows<{ open: number }>(
      pool,
      `select count(*)::integer as open from redrive_catalog.dead_letter where group_id = $1 and status = 'open'`,
      [group],
    )
    expect(await openOf(group)).toBe(row?.open)
  })

  test('keep a dead letter discarded when it is ingested again', async () => {
    const one = dead()
    await made.ingest(new ListSource([one], 'd'))
    const group = groupId('d', SIGNATURE)
    await made.discard({ group }, BY)
    expect(await made.ingest(new ListSource([one], 'd'))).toMatchObject({ added: 0, known: 1 })
    expect(await idsOf(group, 'discarded')).toHaveLength(1)
    expect(await openOf(group)).toBe(0)
  })

  test('reject a filter such as "text" instead of ignoring it', async () => {
    const group = await filled('filter', 3)
    const filters = [
      { group, text: 'declined' },
      { ids: await idsOf(group), text: 'declined' },
      { text: 'declined' },
    ] as unknown as readonly Selection[]
    for (const selection of filters) {
      for (const work of [made.discard(selection, BY), made.restore(selection, BY)]) {
        const { message } = await refusal(work)
        expect(message).toContain('"text" cannot select dead letters here')
        expect(message).toContain('Use "ids" or "group"')
      }
    }
    expect(await openOf(group)).toBe(3)
  })

  test('reject invalid ids and an empty user name', async () => {
    expect((await refusal(made.discard({ ids: ['x'] }, BY))).message).toContain('ids')
    expect((await refusal(made.discard({ ids: [] }, { by: '' }))).message).toContain('by:')
  })
})

describe('a group', () => {
  test('regresses after a newer failure, and only reopens after an older one', async () => {
    const group = await filled('e', 1)
    expect(await made.resolveGroup(group)).toBe(true)
    expect(await made.group(group)).toMatchObject({ state: 'resolved', regressed: false })
    await filled('e', 1, NOW - DAY)
    expect(await made.group(group)).toMatchObject({ state: 'open', regressed: false })
    await made.resolveGroup(group)
    await filled('e', 1, Date.now() + 60_000)
    expect(await made.group(group)).toMatchObject({ state: 'open', regressed: true })
    await made.resolveGroup(group)
    expect(await made.group(group)).toMatchObject({ state: 'resolved', regressed: false })
  })

  test('stays muted until the mute expires or a user reopens it', async () => {
    const group = await filled('f', 1)
    await made.muteGroup(group)
    await filled('f', 1)
    expect(await made.group(group)).toMatchObject({ state: 'muted', mutedUntil: undefined })
    await made.muteGroup(group, { until: NOW + DAY })
    expect(await made.group(group)).toMatchObject({ state: 'muted', mutedUntil: NOW + DAY })
    await made.muteGroup(group, { until: NOW - DAY })
    expect(await made.group(group)).toMatchObject({ state: 'open' })
    await made.muteGroup(group)
    await made.reopenGroup(group)
    expect(await made.group(group)).toMatchObject({ state: 'open' })
  })

  test('has an owner and comments', async () => {
    const group = await filled('g', 1)
    expect(await made.assignGroup(group, 'team\0 a')).toBe(true)
    expect(await made.groups({ owner: 'team\ufffd a' })).toMatchObject({ groups: [{ id: group }] })
    await made.assignGroup(group, undefined)
    expect((await made.group(group))?.owner).toBeUndefined()
    await made.comment(group, { author: 'ada', text: 'first' })
    await made.comment(group, { author: 'bob', text: 'second' })
    expect(await made.comments(group)).toMatchObject([
      { author: 'ada', text: 'first' },
      { author: 'bob', text: 'second' },
    ])
    expect(await made.resolveGroup('00000000-0000-0000-0000-000000000000')).toBe(false)
    expect((await refusal(made.comment('x', { author: 'a', text: 'b' }))).message).toContain(
      'comment',
    )
  })
})

describe('a change of a group', () => {
  const seenOf = async (group: string) => {
    const found = await made.group(group)
    if (found === undefined) throw new Error('The group does not exist.')
    return found
  }

  test('applies all fields together, and only if the group has not changed since it was read', async () => {
    const group = await filled('changing', 1)
    const seen = await seenOf(group)
    const mutedUntil = Date.now() + 60_000
    const change = { state: 'muted', mutedUntil, owner: 'ada' } as const
    expect(await made.changeGroup(group, change, seen)).toBe('done')
    expect(await made.group(group)).toMatchObject(change)
    expect(await made.changeGroup(group, { owner: 'bob' }, seen)).toBe('changed')
    expect(await made.group(group)).toMatchObject(change)
    expect(await made.changeGroup(group, { owner: null }, await seenOf(group))).toBe('done')
    expect(await made.group(group)).toMatchObject({ state: 'muted', mutedUntil, owner: undefined })
  })

  test('detects a concurrent change of each field', async () => {
    const group = await filled('seen', 1)
    const seen = await seenOf(group)
    const others = [
      { ...seen, state: 'resolved' as const },
      { ...seen, mutedUntil: 5 },
      { ...seen, owner: 'bob' },
      { ...seen, regressed: true },
    ]
    for (const other of others) {
      expect(await made.changeGroup(group, { owner: 'ada' }, other)).toBe('changed')
    }
    expect(await made.changeGroup(group, { owner: 'ada' }, seen)).toBe('done')
    const missing = '00000000-0000-0000-0000-000000000000'
    expect(await made.changeGroup(missing, {}, seen)).toBe('missing')
    expect(await made.changeGroup('none', {}, seen)).toBe('missing')
  })

  test('clears a regression when it resolves the group, and the next failure is a new regression', async () => {
    const group = await filled('again', 1)
    expect(await made.changeGroup(group, { state: 'resolved' }, await seenOf(group))).toBe('done')
    await filled('again', 1, Date.now() + 60_000)
    const regressed = await seenOf(group)
    expect(regressed.regressed).toBe(true)
    expect(await made.changeGroup(group, { state: 'resolved' }, regressed)).toBe('done')
    expect(await made.group(group)).toMatchObject({ state: 'resolved', regressed: false })
  })
})

describe('sources', () => {
  test('are listed by name, and found for dead letters, groups and runs', async () => {
    const [b, a] = [await filled('names.b', 2), await filled('names.a', 1)]
    const names = await made.sourceNames()
    expect(names.filter((name) => name.startsWith('names.'))).toEqual(['names.a', 'names.b'])
    const missing = '00000000-0000-0000-0000-000000000000'
    const groups = await made.sourcesOf('group', [a, b, missing, 'none'])
    expect(Object.fromEntries(groups)).toEqual({ [a]: 'names.a', [b]: 'names.b' })
    const ids = await idsOf(b)
    expect([...(await made.sourcesOf('deadLetter', ids)).values()]).toEqual(['names.b', 'names.b'])
    const run = await made.replays.plan({ selection: { ids }, by: 'ada' })
    expect([...(await made.sourcesOf('run', [run.id]))]).toEqual([[run.id, 'names.b']])
    const list = async (...sources: readonly string[]) =>
      (await made.replays.runs({ sources })).runs.map(({ id }) => id)
    expect(await list('names.a')).toEqual([])
    expect(await list('names.a', 'names.b')).toEqual([run.id])
  })
})

describe('retention', () => {
  const at = NOW - 40 * DAY
  const day = new Date(at).toISOString().slice(0, 10)
  const partition = `redrive_catalog.dead_letter_${day.replaceAll('-', '')}`
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

  test('keeps late dead letters for the full time, deletes by source, drops an expired day and records it', async () => {
    const one = await filled('short', 4, at)
    const other = await filled('long', 3, at)
    await made.ingest(new ListSource([], 'long'), { retention: '60d' })
    await made.discard({ ids: (await idsOf(one)).slice(0, 1) }, BY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })

    await Promise.all([age('short', 15 * DAY), age('long', 15 * DAY)])
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 4 })
    expect(await recorded('short')).toEqual([
      { day, count: 4, expired: { open: 3, discarded: 1 }, is_expired: true },
    ])
    expect([await openOf(one), await openOf(other)]).toEqual([0, 3])
    await expectNoOrphans()
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 0 })

    await age('long', 61 * DAY)
    expect(await isThere()).toBe(true)
    expect(await made.maintain()).toMatchObject({ dropped: 1, deleted: 0 })
    expect(await isThere()).toBe(false)
    expect(await openOf(other)).toBe(0)
    expect(await recorded('long')).toEqual([
      { day, count: 3, expired: { open: 3 }, is_expired: true },
    ])
    await expectNoOrphans()
  })

  test('skips a locked day, and drops it in the next call', async () => {
    await filled('busy', 1, at)
    await age('busy', 15 * DAY)
    const client = await pool.connect()
    await client.query(`begin; lock table ${partition} in row exclusive mode`)
    expect(await made.maintain()).toMatchObject({ dropped: 0 })
    await client.query('rollback')
    client.release()
    expect(await isThere()).toBe(true)
    expect(await made.maintain()).toMatchObject({ dropped: 1 })
    expect(await isThere()).toBe(false)
  })

  test('keeps dead letters that arrive during a deletion until their own retention ends', async () => {
    await filled('keeper', 1, at)
    await made.ingest(new ListSource([], 'keeper'), { retention: '60d' })
    const group = await filled('late', 3, at)
    await age('late', 15 * DAY)
    await filled('late', 1, at)
    const deleted = async (most: number) => {
      const text = `select redrive_catalog.delete_some(id, $1, $2) as count from redrive_catalog.source where name = 'late'`
      return (await rows(pool, text, [day, most]))[0]?.['count']
    }
    expect([await deleted(2), await deleted(2)]).toEqual([2, 1])
    expect(await idsOf(group)).toHaveLength(1)
    expect(await recorded('late')).toMatchObject([{ is_expired: false, expired: { open: 3 } }])
    await age('late', 15 * DAY)
    expect(await made.maintain()).toMatchObject({ dropped: 0, deleted: 1 })
    expect(await idsOf(group)).toEqual([])
    expect(await recorded('late')).toMatchObject([{ is_expired: true, expired: { open: 4 } }])
  })

  test('continues with a day after it has deleted the maximum number of rows', async () => {
    await filled('keeper2', 1, at)
    await made.ingest(new ListSource([], 'keeper2'), { retention: '60d' })
    const group = await filled('much', 3, at)
    await age('much', 15 * DAY)
    await pool.query(
      `select redrive_catalog.delete_some(id, $1, 2) from redrive_catalog.source where name = 'much'`,
      [day],
    )
    expect(await made.maintain()).toMatchObject({ deleted: 1 })
    expect(await idsOf(group)).toEqual([])
  })

  test('also deletes dead letters of a day without a partition', async () => {
    const group = await filled('stray', 3, NOW - 3_000 * DAY)
    await age('stray', 15 * DAY)
    expect((await made.maintain()).deleted).toBeGreaterThanOrEqual(3)
    expect(await idsOf(group)).toEqual([])
    expect(await openOf(group)).toBe(0)
  })
})

describe('metrics and alerts', () => {
  test('are read from stored counts', async () => {
    await filled('watched', 120)
    const counts = await made.counts()
    const mine = counts.sources.find(({ source }) => source === 'watched')
    expect(mine).toEqual({
      source: 'watched',
      open: 120,
      count: 120,
      attempts: 360,
      openByClass: { unknown: 120 },
      oldestAt: NOW,
    })
    const metrics = metricsOf(counts)
    expect(metrics.depthBySource['watched']).toBe(120)
    expect(metrics.overThreshold).toContain('watched')
    expect(metrics.averageAttempts).toBe(3)
    const group = groupId('watched', SIGNATURE)
    const kinds = async () =>
      alertsOf(await made.counts())
        .filter(({ source }) => source === 'watched')
        .map(({ kind }) => kind)
    expect(await kinds()).toEqual(['depth', 'dominance', 'new_signature'])
    await made.resolveGroup(group)
    await filled('watched', 1, Date.now() + 60_000)
    expect(await kinds()).toEqual(['depth', 'dominance', 'new_signature', 'regressed'])
    await made.muteGroup(group)
    expect(await kinds()).toEqual(['depth'])
  })
})
