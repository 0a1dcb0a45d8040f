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

describe('metrics and alerts', () => {
  test('are read from stored counts', async () => {
    await filled('watched', 120)
    const counts = await made.counts()
    const mine = counts.sources.find(({ source }) => source === 'watched')
    expect(mine).toEqual({
      source: 'watched',
      open: 120,
      replaying: 0,
      undecided: 0,
      count: 120,
      attempts: 360,
      openByClass: { unknown: 120 },
      oldestAt: NOW,
      expiring: 0,
      nextExpiryAt: undefined,
      lastIngestedAt: expect.any(Number) as number,
      setAside: 0,
      mismatches: 0,
      mismatchedAt: undefined,
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

  test('contain a regressed group and the newest ones when more than a thousand are new', async () => {
    await filled('noisy', 1)
    const id = groupId('noisy', SIGNATURE)
    await pool.query(
      `update redrive_catalog.failure_group set regressed_at = now() where id = $1`,
      [id],
    )
    const { rows: newest } = await pool.query<{ id: string }>(
      `with added as (
        insert into redrive_catalog.failure_group
        select (jsonb_populate_record(g, jsonb_build_object('id', gen_random_uuid(),
          'signature', 'noise-' || n, 'regressed_at', null, 'open_count', 5000 - n,
          'created_at', now() - interval '1 hour' + n * interval '1 s'))).*
        from redrive_catalog.failure_group g, generate_series(1, 1100) n where g.id = $1
        returning id, created_at)
      select id from added order by created_at desc limit 1`,
      [id],
    )
    const ids = (await made.counts()).groups.map((group) => group.id)
    expect(ids).toHaveLength(1_000)
    expect(ids).toContain(id)
    expect(ids).toContain(newest[0]?.id)
  })
})
