import { describe, expect, test } from 'vitest'
import { catalog, type FailureGroup } from '../src/index.ts'
import { groupId } from '../src/ingest/identity.ts'
import { dead, ListSource, migrated, NOW, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_merge')
const made = catalog({ pool, approval: 'anyone' })
const BY = { by: 'ada', reason: 'one contract' }
const [A, B, C] = ['1-00000000000000aa', '1-00000000000000bb', '1-00000000000000cc'] as const
const DAY = 86_400_000

/** Adds dead letters with this signature. */
async function add(source: string, signature: string, count: number, at = NOW): Promise<string> {
  const all = Array.from({ length: count }, () =>
    dead({ signature, at, message: `declined by ${signature}` }),
  )
  await made.ingest(new ListSource(all, source))
  return groupId(source, signature)
}

const idsIn = async (group: string) =>
  (await made.deadLetters({ groups: [group], limit: 200 })).deadLetters.map(({ id }) => id).sort()

const requireGroup = async (id: string) => (await made.group(id)) as FailureGroup

const trendOf = async (group: string) => {
  const points = await made.trend({
    per: 'hour',
    after: NOW - DAY,
    before: NOW + DAY,
    groups: [group],
  })
  return points.reduce((sum, { count }) => sum + count, 0)
}

const listed = async (source: string) =>
  (await made.groups({ sources: [source] })).groups.map(({ id }) => id).sort()

/** Compares the stored counts of every group with its rows; returns the differences. */
const miscounted = () =>
  rows(
    pool,
    `select g.id, g.open_count, g.count from redrive_catalog.failure_group g
       cross join lateral (select count(*) as count, count(*) filter (where status = 'open') as open
         from redrive_catalog.dead_letter d where d.group_id = g.id) d
       where (g.open_count, g.count) is distinct from (d.open, d.count)`,
  )

describe('a merge', () => {
  test('shows the dead letters, counts and trends of all groups in the target, and undoing it restores them', async () => {
    const [a, b] = [await add('sum', A, 3), await add('sum', B, 2, NOW - 7_200_000)]
    const before = await requireGroup(b)
    const merged = await made.regrouping.merge(a, { groups: [b], ...BY })
    expect(merged).toMatchObject({
      id: a,
      count: 5,
      openCount: 5,
      attempts: 15,
      mergedCount: 1,
      mergedInto: undefined,
      firstSeenAt: NOW - 7_200_000,
      lastSeenAt: NOW,
    })
    expect(await listed('sum')).toEqual([a])
    expect(await idsIn(a)).toHaveLength(5)
    expect(await trendOf(a)).toBe(5)
    const { deadLetters } = await made.deadLetters({ groups: [a] })
    expect(new Set(deadLetters.map(({ group }) => group))).toEqual(new Set([a]))
    expect((await made.groups({ sources: ['sum'], text: B })).groups).toMatchObject([{ id: a }])
    expect(await made.regrouping.unmerge(b)).toEqual(before)
    expect(await listed('sum')).toEqual([a, b].sort())
    expect(await idsIn(a)).toHaveLength(3)
    expect(await trendOf(b)).toBe(2)
  })

  test('is named as the group of replay items', async () => {
    const [a, b] = [await add('items', A, 1), await add('items', B, 1)]
    const run = await made.replays.plan({ selection: { group: b }, by: 'ada' })
    const groupsOf = async () =>
      (await made.replays.items({ run: run.id, limit: 10 })).map(({ group }) => group)
    expect(await groupsOf()).toEqual([b])
    await made.regrouping.merge(a, { groups: [b], ...BY })
    expect(await groupsOf()).toEqual([a])
  })

  test('keeps the merged group readable, with the user, the time and the reason', async () => {
    const [a, b] = [await add('readable', A, 1), await add('readable', B, 2)]
    await made.regrouping.merge(a, { groups: [b], ...BY })
    const found = await requireGroup(b)
    expect(found).toMatchObject({
      openCount: 2,
      mergedInto: { group: a, by: 'ada', reason: 'one contract' },
    })
    expect(Math.abs((found.mergedInto?.at ?? 0) - Date.now())).toBeLessThan(60_000)
    expect(await made.regrouping.merged(a)).toMatchObject([{ id: b, title: found.title }])
    // Its id still selects exactly its own part.
    expect(await idsIn(b)).toHaveLength(2)
    expect(await made.changeGroup(b, { state: 'resolved' }, found)).toBe('merged')
    expect(await made.resolveGroup(b)).toBe(false)
  })

  test('applies to later dead letters with the same signatures', async () => {
    const [a, b] = [await add('later', A, 1), await add('later', B, 1)]
    await made.regrouping.merge(a, { groups: [b], ...BY })
    await add('later', B, 4)
    expect(await requireGroup(a)).toMatchObject({ openCount: 6, count: 6 })
    expect(await idsIn(a)).toHaveLength(6)
  })

  test('marks the target as regressed when a merged group fails again', async () => {
    const [a, b] = [await add('regressed', A, 1), await add('regressed', B, 1)]
    await made.regrouping.merge(a, { groups: [b], ...BY })
    await made.resolveGroup(a)
    await add('regressed', B, 1, NOW - DAY)
    expect(await requireGroup(a)).toMatchObject({ state: 'open', regressed: false })
    await made.resolveGroup(a)
    await add('regressed', B, 1, Date.now() + 60_000)
    expect(await requireGroup(a)).toMatchObject({ state: 'open', regressed: true })
    expect((await made.counts()).groups.find(({ id }) => id === a)).toMatchObject({ open: 4 })
  })

  test('opens a resolved target that receives open dead letters', async () => {
    const [a, b] = [await add('reopened', A, 1), await add('reopened', B, 1)]
    await made.resolveGroup(a)
    expect(await made.regrouping.merge(a, { groups: [b], ...BY })).toMatchObject({
      state: 'open',
      regressed: false,
    })
  })

  test('keeps groups that were merged before, when their group is merged and separated', async () => {
    const [a, b, c] = [await add('deep', A, 1), await add('deep', B, 2), await add('deep', C, 4)]
    await made.regrouping.merge(b, { groups: [c], ...BY })
    await made.regrouping.merge(a, { groups: [b], ...BY })
    expect(await requireGroup(a)).toMatchObject({ openCount: 7, mergedCount: 2 })
    expect(await requireGroup(b)).toMatchObject({ openCount: 6, mergedCount: 1 })
    expect([(await idsIn(a)).length, (await idsIn(b)).length]).toEqual([7, 6])
    // The last group is named, because only its state and owner apply.
    expect(await requireGroup(c)).toMatchObject({ mergedInto: { group: a } })
    const again = await made.regrouping.merge(a, { groups: [c], ...BY })
    expect(again).toMatchObject({ openCount: 7, mergedCount: 2 })
    const d = await add('deep', '1-00000000000000dd', 1)
    const { message } = await refusal(made.regrouping.merge(c, { groups: [d], ...BY }))
    expect(message).toContain(`The group ${c} is merged into ${a}. Merge into that group`)
    await made.regrouping.unmerge(b)
    expect(await requireGroup(c)).toMatchObject({ mergedInto: { group: b } })
    expect(await requireGroup(a)).toMatchObject({ openCount: 1, mergedCount: 0 })
    expect(await requireGroup(b)).toMatchObject({ openCount: 6, mergedInto: undefined })
    const [one = ''] = await idsIn(c)
    expect(await made.deadLetter(one)).toMatchObject({ group: b })
    await made.regrouping.unmerge(c)
    expect(await made.deadLetter(one)).toMatchObject({ group: c })
    expect(
      await rows(pool, 'select from redrive_catalog.group_part where group_id = $1', [b]),
    ).toEqual([])
  })

  test('discards and restores the dead letters of all parts', async () => {
    const [a, b] = [await add('discard', A, 1_050), await add('discard', B, 1_020)]
    await made.regrouping.merge(a, { groups: [b], ...BY })
    expect(await made.discard({ group: a }, BY)).toEqual({ changed: 2_070, skipped: [] })
    expect(await requireGroup(a)).toMatchObject({ openCount: 0, count: 2_070 })
    expect(await made.restore({ group: a }, BY)).toEqual({ changed: 2_070, skipped: [] })
    expect(await requireGroup(b)).toMatchObject({ openCount: 1_020 })
  })

  test('keeps runs and selections that were planned before', async () => {
    const [a, b] = [await add('frozen', A, 2), await add('frozen', B, 3)]
    const chosen = await made.select({ action: 'discard', query: { groups: [a] }, by: 'ada' })
    const run = await made.replays.plan({ selection: { group: b }, by: 'ada' })
    await made.regrouping.merge(a, { groups: [b], ...BY })
    const all = await made.select({ action: 'discard', query: { groups: [a] }, by: 'ada' })
    expect(all.count).toBe(5)
    expect((await made.replays.plan({ selection: { group: a }, by: 'ada' })).counts.planned).toBe(5)
    const { id, hash } = run
    expect(await made.replays.approve(id, { hash, by: 'ada' })).toMatchObject({
      counts: { queued: 3, skipped: 0 },
    })
    const done = await made.applySelection('discard', chosen.id, { hash: chosen.hash, by: 'ada' })
    expect(done).toMatchObject({ changed: 2, skippedCount: 0 })
    expect(await requireGroup(a)).toMatchObject({ openCount: 0, replayingCount: 3 })
  })

  test('survives retention when the merged group has no dead letters any more', async () => {
    const [a, b] = [await add('kept', A, 1), await add('kept', B, 1)]
    await made.regrouping.merge(a, { groups: [b], ...BY })
    await pool.query(
      `with gone as (delete from redrive_catalog.dead_letter where group_id = any($1))
       update redrive_catalog.failure_group set open_count = 0, count = 0, last_seen_at = now() - interval '200 days' where id = any($1)`,
      [[a, b]],
    )
    expect((await made.maintain()).groups).toBe(0)
    await add('kept', B, 1)
    expect(await listed('kept')).toEqual([a])
  })

  test('is rejected with the reason and the next step', async () => {
    const [a, b, c] = [await add('no', A, 1), await add('no', B, 1), await add('no', C, 1)]
    const other = await add('elsewhere', A, 1)
    const merge = (target: string, ...groups: readonly string[]) =>
      refusal(made.regrouping.merge(target, { groups, ...BY }))
    expect((await merge(a, a, b)).message).toContain('cannot be merged into itself')
    expect((await merge(a, other)).message).toContain(
      'belongs to source "elsewhere" and the target to source "no". Only groups of one source can be merged.',
    )
    const nowhere = groupId('no', 'never seen')
    expect((await merge(a, nowhere)).message).toContain(`No group has the id ${nowhere}`)
    expect((await merge('x', a)).message).toContain('No group has the id x')
    expect(
      (await refusal(made.regrouping.merge(a, { groups: [b], by: 'ada', reason: ' ' }))).message,
    ).toContain('reason:')
    await made.regrouping.merge(a, { groups: [b], ...BY })
    expect((await merge(b, c)).message).toContain(
      `The group ${b} is merged into ${a}. Merge into that group, or unmerge ${b} first.`,
    )
    expect((await merge(c, b)).message).toContain(`Merge that group, or unmerge ${b} first.`)
    expect((await refusal(made.regrouping.unmerge(c))).message).toContain('not merged')
    // A repeated request changes nothing.
    expect(await made.regrouping.merge(a, { groups: [b], ...BY })).toMatchObject({ mergedCount: 1 })
    expect(await listed('no')).toEqual([a, c].sort())
  })
})

describe('at the same time', () => {
  test('ingests, merges and separations keep every count exact', async () => {
    const [a, b] = [await add('busy', A, 1), await add('busy', B, 1)]
    const ingests = [A, B, A, B].map(async (signature) => {
      for (let round = 0; round < 10; round += 1) await add('busy', signature, 20)
    })
    const merges = (async () => {
      for (let round = 0; round < 10; round += 1) {
        await made.regrouping.merge(a, { groups: [b], ...BY })
        if (round < 9) await made.regrouping.unmerge(b)
      }
    })()
    const discards = (async () => {
      for (let round = 0; round < 10; round += 1) await made.discard({ ids: await idsIn(a) }, BY)
    })()
    await Promise.all([...ingests, merges, discards])
    expect(await miscounted()).toEqual([])
    const { openCount, count } = await requireGroup(a)
    expect(count).toBe(802)
    const [open] = await rows<{ open: number }>(
      pool,
      `select count(*)::integer as open from redrive_catalog.dead_letter where group_id = any($1) and status = 'open'`,
      [[a, b]],
    )
    expect(openCount).toBe(open?.open)
    expect(await trendOf(a)).toBe(802)
  })

  test('two merges in opposite directions never form a circle', async () => {
    const [a, b] = [await add('circle', A, 1), await add('circle', B, 1)]
    const results = await Promise.allSettled([
      made.regrouping.merge(a, { groups: [b], ...BY }),
      made.regrouping.merge(b, { groups: [a], ...BY }),
    ])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const [left = ''] = await listed('circle')
    expect(await requireGroup(left)).toMatchObject({ openCount: 2, mergedCount: 1 })
  })

  test('two merges of one group into different targets leave it in exactly one', async () => {
    const [a, b, c] = [await add('once', A, 1), await add('once', B, 1), await add('once', C, 1)]
    const results = await Promise.allSettled([
      made.regrouping.merge(a, { groups: [c], ...BY }),
      made.regrouping.merge(b, { groups: [c], ...BY }),
    ])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const counts = await Promise.all([a, b].map(async (id) => (await requireGroup(id)).openCount))
    expect(new Set(counts)).toEqual(new Set([1, 2]))
  })
})

describe('new signature rules', () => {
  const [A2, B2, C2] = ['2-00000000000000aa', '2-00000000000000bb', '2-00000000000000cc'] as const
  const ingest = (source: string, signature: string, message: string) =>
    made.ingest(new ListSource([dead({ signature, message })], source))

  test('keep a merge: the new groups of both failures join the target, others do not', async () => {
    const [a, b] = [groupId('rules', A), groupId('rules', B)]
    await ingest('rules', A, 'acquirer elavon declined order 4711')
    await ingest('rules', B, 'acquirer nets declined order 4712')
    await made.regrouping.merge(a, { groups: [b], ...BY })
    await ingest('rules', B2, 'acquirer nets declined order 99')
    await ingest('rules', A2, 'acquirer elavon declined order 100')
    await ingest('rules', C2, 'acquirer worldline declined order 101')
    expect(await requireGroup(a)).toMatchObject({ openCount: 4, mergedCount: 3 })
    expect(await requireGroup(groupId('rules', B2))).toMatchObject({
      mergedInto: { group: a, by: 'ada', reason: 'one contract' },
    })
    expect(await requireGroup(groupId('rules', A2))).toMatchObject({
      mergedInto: { group: a, by: 'redrive', reason: 'the same failures, by later rules' },
    })
    expect(await listed('rules')).toEqual([a, groupId('rules', C2)].sort())
    await ingest('rules', B2, 'acquirer nets declined order 102')
    expect(await idsIn(a)).toHaveLength(5)
  })

  test('keep a split', async () => {
    const message = 'lock timeout in relation ledger'
    await ingest('splits', A, message)
    await ingest('splits', A, message)
    const request = { conditions: { texts: ['ledger'] }, name: 'ledger', ...BY }
    const { group } = await made.regrouping.split(groupId('splits', A), request)
    expect(group.openCount).toBe(2)
    await ingest('splits', A2, message)
    await ingest('splits', A2, message)
    expect((await requireGroup(group.id)).openCount).toBe(4)
    expect(await miscounted()).toEqual([])
  })
})
