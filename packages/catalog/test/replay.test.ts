import { describe, expect, test } from 'vitest'
import { catalog } from '../src/index.ts'
import { dead, migrated, refusal, rows } from './rig.ts'
import { failedAgain, SIGNATURE, staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_replay')

describe('a replay run', () => {
  test('publishes in order, with one replay id each, and ends when all items are confirmed', async () => {
    const stage = await staged(pool, 'whole', 120)
    const planned = await stage.plan()
    expect(planned).toMatchObject({ state: 'planned', counts: { planned: 120, skipped: 0 } })
    expect(await stage.statuses()).toEqual({ open: 120 })
    expect(stage.wire.sent).toHaveLength(0)
    const run = await stage.replays.approve(planned.id, { hash: planned.hash, by: 'bob' })
    expect(run).toMatchObject({ state: 'running', approvedBy: 'bob', counts: { queued: 120 } })
    expect(await stage.statuses()).toEqual({ replaying: 120 })
    const done = await stage.ended(run.id)
    expect(done).toMatchObject({
      state: 'done',
      counts: { resolved: 120, queued: 0, published: 0 },
    })
    expect(await stage.statuses()).toEqual({ resolved: 120 })
    expect(await stage.unsettledCount()).toBe(0)
    expect(stage.wire.released).toBe(120)
    expect(new Set(stage.wire.sent.map(({ replayId }) => replayId)).size).toBe(120)
    const firsts = stage.wire.sent.map(({ deadLetter }) => deadLetter.delivery.cycle.firstFailedAt)
    expect(firsts).toEqual(firsts.toSorted((a, b) => (a ?? 0) - (b ?? 0)))
    const [item] = await stage.replays.items({ run: run.id, limit: 1 })
    expect(item).toMatchObject({ state: 'resolved', confirmedBy: 'confirmation', publishCount: 1 })
  })

  test('publishes the original bytes and key', async () => {
    const bytes = Buffer.from([0, 255, 254, 10])
    const headers = { tenant: 'a', weight: 7n, __proto__: { evil: true } }
    const delivery = { bytes, headers, key: 'order-1', id: 'm-1', contentType: undefined }
    const stage = await staged(pool, 'bytes', 1, () => ({ delivery, envelope: { exchange: 'x' } }))
    await stage.ended((await stage.started()).id)
    expect(stage.wire.sent[0]?.deadLetter).toMatchObject({
      envelope: { exchange: 'x' },
      delivery: { bytes, headers: { tenant: 'a', weight: 7n }, key: 'order-1', id: 'm-1' },
    })
    expect(stage.wire.sent[0]?.deadLetter.delivery).not.toHaveProperty('replaces')
  })

  test('publishes one, then five, then fifty, each after the previous stage is confirmed', async () => {
    const stage = await staged(pool, 'canary', 100)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ratePerSecond: 10_000 })
    const steps: number[] = []
    for (const _ of [1, 2, 3]) {
      for (const __ of [1, 2, 3]) await stage.replayer.turn()
      steps.push(stage.wire.sent.length)
      const said = stage.wire.sent.map(({ replayId }) => ({
        replayId,
        outcome: 'handled' as const,
        at: 0,
      }))
      stage.wire.say(...said)
      await stage.replayer.confirm()
    }
    expect(steps).toEqual([1, 6, 56])
    expect(await stage.replays.run(id)).toMatchObject({ counts: { resolved: 56, queued: 44 } })
  })

  test('catches up on a short delay between two turns', async () => {
    const stage = await staged(pool, 'short delay', 12)
    await stage.started({ ratePerSecond: 10, canary: [1] })
    await stage.replayer.turn()
    await stage.replayer.confirm()
    await pool.query(
      `update redrive_catalog.replay_run set due_at = clock_timestamp() - interval '1 minute' where state = 'running'`,
    )
    await pool.query(
      `update redrive_catalog.replay_rate set next_at = clock_timestamp() - interval '1 minute'`,
    )
    await stage.replayer.turn()
    // A delay of 500 ms, which is five items, is caught up. A delay of a minute is not. Two more are due within 250 ms.
    expect(stage.wire.sentAt).toHaveLength(9)
    const [, second = 0, , , , , seventh = 0, eighth = 0] = stage.wire.sentAt
    expect(seventh - second).toBeLessThan(eighth - seventh + 50)
    expect(eighth - second).toBeGreaterThan(50)
  })

  test('keeps its rate, also when two workers publish two runs to the same source', async () => {
    const stage = await staged(pool, 'rate', 500)
    const ids = await stage.ids()
    const other = stage.catalog.replays.replayer({ sources: [{ source: stage.wire }] })
    const halves = [ids.slice(0, 250), ids.slice(250)]
    const runs = await Promise.all(
      halves.map((half) =>
        stage.started({ selection: { ids: half }, ratePerSecond: 200, canary: [] }),
      ),
    )
    const isRunning = async () => {
      const seen = await Promise.all(runs.map(({ id }) => stage.replays.run(id)))
      return seen.some((run) => run?.state === 'running')
    }
    const publish = async (worker: typeof other) => {
      while (await isRunning()) await worker.turn()
    }
    const settle = async () => {
      while (await isRunning()) {
        await other.confirm()
        await other.sweep()
      }
    }
    const from = performance.now()
    await Promise.all([publish(stage.replayer), publish(other), settle()])
    const { sent, sentAt } = stage.wire
    // The last item is due 499 times 5 ms after the first, whatever delay is caught up in between.
    expect(Math.max(...sentAt) - from).toBeGreaterThanOrEqual(2_490)
    expect(sent).toHaveLength(500)
    expect(new Set(sent.map(({ replayId }) => replayId)).size).toBe(500)
  })

  test('is the same run when it is planned again with the same request name', async () => {
    const stage = await staged(pool, 'named', 3)
    const first = await stage.plan({ request: 'incident-7' })
    const again = await stage.plan({ request: 'incident-7' })
    expect(again.id).toBe(first.id)
    expect((await stage.plan()).id).not.toBe(first.id)
  })

  test('is one run when it is planned several times concurrently with one request name', async () => {
    const stage = await staged(pool, 'named_at_once', 3)
    const asked = await Promise.all([1, 2, 3, 4].map(() => stage.plan({ request: 'incident-8' })))
    expect(new Set(asked.map(({ id }) => id)).size).toBe(1)
  })
})

describe('the counts of a group and of a source', () => {
  test('count open, replaying and undecided dead letters separately', async () => {
    const stage = await staged(pool, 'three counts', 5)
    stage.wire.answer = () => 'silent'
    expect(await stage.counts()).toEqual({ open: 5, replaying: 0, undecided: 0 })
    const { id } = await stage.started({ canary: [2, 3], outcomeTimeout: '1s' })
    expect(await stage.counts()).toEqual({ open: 0, replaying: 5, undecided: 0 })
    // What no plan can select is not listed as open.
    expect(
      (await stage.catalog.groups({ sources: ['three counts'], hasOpen: true })).groups,
    ).toEqual([])
    expect(await stage.until(id, ({ state }) => state === 'paused')).toMatchObject({
      counts: { unknown: 2 },
    })
    expect(await stage.counts()).toEqual({ open: 0, replaying: 3, undecided: 2 })
    const sources = (await stage.catalog.counts()).sources
    expect(sources.find(({ source }) => source === 'three counts')).toMatchObject({
      ...{ open: 0, replaying: 3, undecided: 2, openByClass: {} },
    })
    const [first, second] = stage.wire.sent
    if (first === undefined || second === undefined) throw new Error('Nothing was published.')
    // One of the undecided ones fails again, and the run is cancelled.
    stage.wire.back(failedAgain(first.deadLetter, first.replayId))
    await stage.catalog.ingest(stage.wire)
    expect(await stage.counts()).toEqual({ open: 1, replaying: 3, undecided: 1 })
    await stage.replays.cancel(id, { by: 'ada' })
    expect(await stage.counts()).toEqual({ open: 4, replaying: 0, undecided: 1 })
    stage.wire.say({ replayId: second.replayId, outcome: 'handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.counts()).toEqual({ open: 4, replaying: 0, undecided: 0 })
  })
})

describe('a dead letter that fails again', () => {
  test('stays the same dead letter, open in its next cycle, with its previous cycle kept', async () => {
    const stage = await staged(pool, 'again', 2)
    const [id = ''] = await stage.ids()
    stage.wire.answer = () => 'fails'
    const run = await stage.ended((await stage.started()).id)
    expect(run).toMatchObject({ state: 'paused', counts: { failed_again: 1 } })
    expect(run.pauseReason).toContain('failed again')
    expect(await stage.ids()).toHaveLength(2)
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'open', cycle: 2 })
    expect(await stage.unsettledCount()).toBe(2)
    const cycles = await rows(
      pool,
      'select cycle, attempts from redrive_catalog.failure_cycle where dead_letter_id = $1',
      [id],
    )
    expect(cycles).toEqual([{ cycle: 1, attempts: 3 }])
    const [item] = await stage.replays.items({ deadLetter: id })
    expect(item).toMatchObject({ state: 'failed_again', cycle: 1 })
  })

  test('moves to the group of its new failure, and both groups have correct counts', async () => {
    const stage = await staged(pool, 'moved', 2)
    const other = '1-00000000000000bb'
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [] })
    await stage.replayer.turn()
    const [sent] = stage.wire.sent
    if (sent === undefined) throw new Error('Nothing was sent.')
    stage.wire.back(failedAgain(sent.deadLetter, sent.replayId, { signature: other }))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({
      added: 0,
      failedAgain: 1,
      known: 0,
    })
    const { groups } = await stage.catalog.groups({ sources: ['moved'] })
    const open = Object.fromEntries(
      groups.map(({ signature, openCount, replayingCount }) => [
        signature,
        openCount + replayingCount,
      ]),
    )
    expect(open).toEqual({ [SIGNATURE]: 1, [other]: 1 })
    // A second copy of the same replay that also fails changes nothing.
    stage.wire.back(failedAgain(sent.deadLetter, sent.replayId, { signature: other }))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({
      added: 0,
      failedAgain: 0,
      known: 1,
    })
    expect(await stage.replays.run(id)).toMatchObject({ counts: { failed_again: 1, published: 1 } })
  })

  test('is resolved when another copy of the same replay took effect', async () => {
    const stage = await staged(pool, 'both', 1)
    stage.wire.answer = () => 'fails'
    const { id } = await stage.started()
    await stage.until(id, ({ counts }) => counts.failed_again === 1)
    const replayId = stage.wire.sent[0]?.replayId ?? ''
    stage.wire.say({ replayId, outcome: 'handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ resolved: 1 })
    expect(await stage.unsettledCount()).toBe(0)
  })

  test('gets a new replay id in the next cycle', async () => {
    const stage = await staged(pool, 'twice', 1)
    stage.wire.answer = ({ deadLetter }) =>
      deadLetter.delivery.cycle.number < 2 ? 'fails' : 'handled'
    await stage.ended((await stage.started()).id)
    const run = await stage.ended((await stage.started({ overrides: ['failed_recently'] })).id)
    expect(run).toMatchObject({ state: 'done', counts: { resolved: 1 } })
    const [first, second] = stage.wire.sent
    expect(first?.replayId).not.toBe(second?.replayId)
    expect(second?.deadLetter.delivery.cycle.number).toBe(2)
  })

  test('is a new dead letter if its replay id is unknown', async () => {
    const stage = await staged(pool, 'stranger', 0)
    const one = dead({ delivery: { replayId: '0c6b7f0e-1111-4222-8333-944455556666' } })
    stage.wire.back(one)
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 1, failedAgain: 0 })
  })
})

describe('the gates', () => {
  test('skip a dead letter whose origin is not in the allowed origins', async () => {
    const stage = await staged(pool, 'g9', 3)
    const [id = ''] = await stage.ids()
    await pool.query(`update redrive_catalog.dead_letter set origin = 'payments' where id = $1`, [
      id,
    ])
    const bound = catalog({ pool, origins: { g9: ['orders'] } }).replays
    const plan = await bound.plan({ selection: { ids: await stage.ids() }, by: 'ada' })
    expect(plan).toMatchObject({
      counts: { planned: 2, skipped: 1 },
      skipped: { unknown_origin: 1 },
    })
    const both = catalog({ pool, origins: { g9: ['orders', 'payments'] } }).replays
    expect((await both.plan({ selection: { ids: [id] }, by: 'ada' })).counts.planned).toBe(1)
    expect((await stage.plan()).counts.planned).toBe(3)
  })

  const DAY = 86_400_000
  const verdicts = async (name: string, said: Parameters<typeof staged>[3], request = {}) => {
    const stage = await staged(pool, name, 1, said)
    const { counts, skipped } = await stage.plan(request)
    return { planned: counts.planned, skipped }
  }

  test('skip dead letters that are quarantined, too old or expired in the inbox, unless overridden', async () => {
    const quarantined = () => ({ quarantined: true })
    expect(await verdicts('g1', quarantined)).toEqual({ planned: 0, skipped: { quarantined: 1 } })
    expect(await verdicts('g2', quarantined, { overrides: ['quarantined'] })).toMatchObject({
      planned: 1,
    })
    const old = () => ({ at: Date.now() - 2 * DAY })
    expect(await verdicts('g3', old)).toEqual({ planned: 0, skipped: { too_old: 1 } })
    expect(await verdicts('g4', old, { maxAge: '3d' })).toMatchObject({ planned: 1 })
    const request = { overrides: ['too_old'], inboxRetention: '1d' }
    expect(await verdicts('g5', old, request)).toEqual({
      planned: 0,
      skipped: { inbox_expired: 1 },
    })
    expect(await verdicts('g6', old, { ...request, change: { force: true } })).toMatchObject({
      planned: 1,
    })
  })

  test('skip a dead letter that failed again three times', async () => {
    expect(await verdicts('g7', () => ({ cycle: 3 }))).toMatchObject({ planned: 1 })
    expect(await verdicts('g8', () => ({ cycle: 4 }))).toEqual({
      planned: 0,
      skipped: { too_many_cycles: 1 },
    })
  })

  test('skip a dead letter that failed again, and that a rule has moved to another group since', async () => {
    const rule = { name: 'all', match: { class: 'unknown' }, group: 'All' }
    const stage = await staged(pool, 'g10', 1)
    stage.wire.answer = () => 'fails'
    await stage.ended((await stage.started()).id)
    const moving = catalog({ pool, fingerprints: [rule] })
    expect(await moving.regrouping.apply({ sources: ['g10'] })).toMatchObject({ moved: 1 })
    const plan = await stage.plan({ selection: { ids: await stage.ids() } })
    expect(plan.skipped).toEqual({ failed_recently: 1 })
  })

  test('skip a dead letter that failed again in the same way less than an hour ago', async () => {
    const stage = await staged(pool, 'g9', 1)
    stage.wire.answer = () => 'fails'
    await stage.ended((await stage.started()).id)
    expect((await stage.plan()).skipped).toEqual({ failed_recently: 1 })
    await pool.query(
      `update redrive_catalog.dead_letter d set first_failed_at = now() - interval '3 hours', last_failed_at = now() - interval '2 hours'
        from redrive_catalog.source s where s.id = d.source_id and s.name = 'g9'`,
    )
    expect((await stage.plan()).counts.planned).toBe(1)
  })

  test('skip dead letters that are no longer open', async () => {
    const stage = await staged(pool, 'g10', 2)
    const ids = await stage.ids()
    await stage.catalog.discard({ ids: ids.slice(0, 1) }, { by: 'ada' })
    expect((await stage.plan({ selection: { ids } })).skipped).toEqual({ not_open: 1 })
    expect(
      await refusal(stage.plan({ selection: { ids: ['00000000-0000-4000-8000-000000000000'] } })),
    ).toMatchObject({
      message: expect.stringContaining('no dead letters') as unknown,
    })
  })

  test('by text contain only messages with this text', async () => {
    const stage = await staged(pool, 'g12', 0)
    const bank = (name: string) => dead({ message: `no rate for customer "${name}"` })
    stage.wire.back(bank('eu-bank'))
    await stage.catalog.ingest(stage.wire)
    stage.wire.back(bank('us-bank'), bank('us-bank'))
    await stage.catalog.ingest(stage.wire)
    for (const [text, count] of [
      ['eu-bank', 1],
      ['us-bank', 2],
    ] as const) {
      for (const query of [
        { after: 0, sources: ['g12'], texts: [text] },
        { groups: [stage.group], texts: [text] },
      ]) {
        expect((await stage.plan({ selection: { query } })).counts.planned).toBe(count)
      }
    }
    const { message } = await refusal(
      stage.plan({ selection: { query: { after: 0, sources: ['g12'], texts: ['uk-bank'] } } }),
    )
    expect(message).toContain('no dead letters')
  })

  test('report all problems of a request together', async () => {
    const stage = await staged(pool, 'g11', 1)
    const wrong = {
      ratePerSecond: 0,
      canary: [0],
      maxFailureRatio: 2,
      outcomeTimeout: 'soon',
      by: '',
    } as const
    const { message } = await refusal(stage.plan(wrong as never))
    for (const field of ['ratePerSecond', 'canary', 'maxFailureRatio', 'outcomeTimeout', 'by']) {
      expect(message).toContain(field)
    }
  })
})

describe('an approval', () => {
  test('needs the hash of the plan and another person, within one hour', async () => {
    const stage = await staged(pool, 'a1', 1)
    const { id, hash } = await stage.plan()
    expect(await refusal(stage.replays.approve(id, { hash, by: 'ada' }))).toMatchObject({
      code: 'NEEDS_ANOTHER_PERSON',
      message: expect.stringContaining('another person') as string,
    })
    const other = await stage.plan({ ratePerSecond: 1 })
    expect(
      (await refusal(stage.replays.approve(id, { hash: other.hash, by: 'bob' }))).message,
    ).toContain('not the hash of this run')
    await pool.query(
      `update redrive_catalog.replay_run set planned_at = now() - interval '2 hours' where id = $1`,
      [id],
    )
    expect((await refusal(stage.replays.approve(id, { hash, by: 'bob' }))).message).toContain(
      'older than one hour',
    )
    await stage.replayer.sweep()
    expect(await stage.replays.run(id)).toMatchObject({ state: 'plan_expired' })
    expect(await stage.statuses()).toEqual({ open: 1 })
  })

  test('skips dead letters that have changed, and names the run that contains them', async () => {
    const stage = await staged(pool, 'a2', 3)
    const ids = await stage.ids()
    const first = await stage.plan({ selection: { ids: ids.slice(0, 2) } })
    const second = await stage.plan()
    await stage.catalog.discard({ ids: ids.slice(2) }, { by: 'ada' })
    await stage.catalog.restore({ ids: ids.slice(2) }, { by: 'ada' })
    await stage.replays.approve(first.id, { hash: first.hash, by: 'bob' })
    const run = await stage.replays.approve(second.id, { hash: second.hash, by: 'bob' })
    expect(run).toMatchObject({ state: 'done', skipped: { in_run: 2, changed: 1 } })
    const items = await stage.replays.items({ run: second.id })
    expect(items.map(({ otherRun }) => otherRun)).toEqual([first.id, first.id, undefined])
  })

  test('assigns each item to one run when two users approve a hundred items at the same time', async () => {
    const stage = await staged(pool, 'a3', 100)
    const plans = await Promise.all([
      stage.plan(),
      stage.plan({ by: 'eve' }),
      stage.plan({ by: 'kim' }),
    ])
    const runs = await Promise.all(
      plans.map(({ id, hash }) => stage.replays.approve(id, { hash, by: 'bob' })),
    )
    const queued = runs.map(({ counts }) => counts.queued)
    expect(queued.reduce((sum, one) => sum + one)).toBe(100)
    for (const { id } of runs) await stage.ended(id)
    expect(stage.wire.sent).toHaveLength(100)
    const winner = runs.find(({ counts }) => counts.queued === 100)?.id
    const [item] = await stage.replays.items({
      run: runs.find(({ id }) => id !== winner)?.id ?? '',
      limit: 1,
    })
    expect(item).toMatchObject({ state: 'skipped', reason: 'in_run', otherRun: winner })
  })
})
