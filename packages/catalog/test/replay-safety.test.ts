import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RedriveError } from '@redrive/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { catalog } from '../src/index.ts'
import { bodyOf, migrated, poolOn, refusal, rows } from './rig.ts'
import { failedAgain, staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_replay_safety')

/** Lets the leases of all claimed and publishing items expire. */
const lapse = (run: string) =>
  pool.query(
    `update redrive_catalog.replay_item set lease_until = now() - interval '1 second' where run_id = $1 and lease_until is not null`,
    [run],
  )

const tokenOf = async (run: string) => {
  const [row] = await rows<{ lease_token: string }>(
    pool,
    'select lease_token from redrive_catalog.replay_item where run_id = $1 limit 1',
    [run],
  )
  return row?.lease_token
}

/** A pool on the same database whose commits wait until the test releases them. */
function lateCommits() {
  const late = poolOn(pool.options.connectionString ?? '')
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  late.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
    const held = async (...args: unknown[]) => {
      if ((args[0] as { text?: string }).text !== 'commit') return query(...args)
      reached.resolve()
      await gate.promise
      return query(...args)
    }
    Object.assign(client, { query: held })
  })
  return { late, reached: reached.promise, letThrough: gate.resolve }
}

/** The sessions that wait for a lock. */
const WAITING = `
select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const sessionsWait = async (count: number) => {
  await expect.poll(async () => (await rows(pool, WAITING)).length).toBe(count)
}
const oneWaits = () => sessionsWait(1)

describe('an outcome that arrives before its message is marked as published', () => {
  test.each([
    ['confirmation', 'handled', { resolved: 4 }],
    ['failure', 'fails', { failed_again: 4 }],
  ] as const)('does not deadlock with the worker: a %s', async (name, answer, counts) => {
    const url = new URL(pool.options.connectionString ?? '')
    // Without an index, both would find the rows in the same order.
    url.searchParams.set('options', '-c enable_seqscan=off -c enable_bitmapscan=off')
    const indexed = poolOn(url.href)
    const holder = await pool.connect()
    onTestFinished(async () => {
      holder.release(true)
      await indexed.end()
    })
    const stage = await staged(indexed, `early ${name}`, 4)
    stage.wire.answer = () => answer
    const { id } = await stage.started({ canary: [] })
    // The order of the replay ids is the opposite of the order of publishing.
    await pool.query(
      `update redrive_catalog.replay_item
        set replay_id = (left(run_id::text, 24) || lpad((1000 - place)::text, 12, '0'))::uuid where run_id = $1`,
      [id],
    )
    const published = Promise.withResolvers<void>()
    stage.wire.onPublish = () => published.promise
    const publishing = stage.replayer.turn()
    await expect.poll(() => stage.wire.sent.length).toBe(4)
    await holder.query('begin')
    await holder.query(
      `select from redrive_catalog.replay_item where run_id = $1 order by replay_id limit 1 for update`,
      [id],
    )
    const settling =
      answer === 'fails' ? stage.catalog.ingest(stage.wire) : stage.replayer.confirm()
    await oneWaits()
    published.resolve()
    await sessionsWait(2)
    await holder.query('rollback')
    await settling
    expect(await publishing).toMatchObject({ published: 0, fenced: 4 })
    expect(await stage.replays.run(id)).toMatchObject({ counts })
  })
})

describe('stopping a run', () => {
  test('publishes nothing while it is paused, and continues when it is resumed', async () => {
    const stage = await staged(pool, 's1', 20)
    const { id } = await stage.started({ canary: [] })
    await stage.replays.pause(id, { by: 'ada' })
    expect(await stage.replayer.turn()).toBeUndefined()
    expect(stage.wire.sent).toHaveLength(0)
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'paused',
      pauseReason: 'paused by ada',
    })
    expect(await stage.replays.resume(id, { by: 'eve' })).toMatchObject({ resumedBy: 'eve' })
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 20 } })
  })

  test('needs a new approval by another person after a pause of more than 24 hours', async () => {
    const stage = await staged(pool, 'long-pause', 3)
    const { id, hash } = await stage.started({ canary: [] })
    const pausedFor = async (hours: number) => {
      await stage.replays.pause(id, { by: 'ada' })
      await rows(
        pool,
        `update redrive_catalog.replay_run set paused_at = paused_at - $2 * interval '1 hour'
          where id = $1 returning id`,
        [id, hours],
      )
    }
    await pausedFor(23.9)
    await expect(stage.replays.approve(id, { hash, by: 'eve' })).rejects.toMatchObject({
      message: 'The run cannot be approved: its state is "paused".',
    })
    expect(await stage.replays.resume(id, { by: 'ada' })).toMatchObject({ state: 'running' })
    await pausedFor(24.1)
    await expect(stage.replays.resume(id, { by: 'ada' })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('was paused for more than 1d') as unknown,
    })
    const { plannedBy } = (await stage.replays.run(id)) as { plannedBy: string }
    await expect(stage.replays.approve(id, { hash, by: plannedBy })).rejects.toMatchObject({
      code: 'NEEDS_ANOTHER_PERSON',
    })
    await expect(stage.replays.approve(id, { hash: 'x', by: 'eve' })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(await stage.replays.approve(id, { hash, by: 'eve' })).toMatchObject({
      state: 'running',
      approvedBy: 'eve',
      pausedAt: undefined,
    })
    expect((await stage.ended(id)).state).toBe('done')
  })

  test('reopens unpublished items on cancel, and published items get their outcome', async () => {
    const stage = await staged(pool, 's2', 30)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [10, 20] })
    await stage.replayer.turn()
    const run = await stage.replays.cancel(id, { by: 'ada' })
    expect(run).toMatchObject({ state: 'cancelled', counts: { cancelled: 20, published: 10 } })
    expect(await stage.statuses()).toEqual({ open: 20, replaying: 10 })
    expect(await stage.replayer.turn()).toBeUndefined()
    stage.wire.say(
      ...stage.wire.sent.map(({ replayId }) => ({ replayId, outcome: 'handled' as const, at: 0 })),
    )
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ open: 20, resolved: 10 })
    expect(await stage.unsettledCount()).toBe(20)
    expect((await refusal(stage.replays.cancel(id, { by: 'ada' }))).message).toContain('has ended')
  })

  test('never publishes claimed items after a cancel', async () => {
    const stage = await staged(pool, 's3', 5)
    const { id } = await stage.started({ canary: [] })
    let isFirst = true
    // Cancels after the first is published and before the rest is marked.
    stage.wire.onPublish = async () => {
      if (isFirst) await stage.replays.cancel(id, { by: 'ada' })
      isFirst = false
    }
    await stage.replayer.turn()
    await stage.replayer.confirm()
    const counts = (await stage.replays.run(id))?.counts
    expect((counts?.resolved ?? 0) + (counts?.cancelled ?? 0)).toBe(5)
    expect(stage.wire.sent).toHaveLength(counts?.resolved ?? -1)
  })

  test('does not change the items of another run when a plan is cancelled', async () => {
    const stage = await staged(pool, 's10', 3)
    stage.wire.answer = () => 'silent'
    const plan = await stage.plan()
    const { id } = await stage.started({ canary: [] })
    await stage.replayer.turn()
    expect(await stage.replays.cancel(plan.id, { by: 'ada' })).toMatchObject({
      state: 'cancelled',
      counts: { cancelled: 3 },
    })
    expect(await stage.statuses()).toEqual({ replaying: 3 })
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 3 } })
  })

  test('waits for the outcome of items that the broker did not confirm before a cancel', async () => {
    const stage = await staged(pool, 's9', 2)
    stage.wire.refuse = (message) =>
      stage.wire.sent.push(message) > 0 ? new Error('no answer') : undefined
    const { id } = await stage.started({ canary: [1] })
    await stage.replayer.turn()
    const run = await stage.replays.cancel(id, { by: 'ada' })
    expect(run.counts).toMatchObject({ published: 1, cancelled: 1 })
    expect(await stage.statuses()).toEqual({ replaying: 1, open: 1 })
  })

  test('reopens all items when it is cancelled during its approval', async () => {
    const stage = await staged(pool, 's12', 3)
    const { id, hash } = await stage.plan()
    const { late, reached, letThrough } = lateCommits()
    const approving = catalog({ pool: late }).replays.approve(id, { hash, by: 'bob' })
    await reached
    const cancelling = stage.replays.cancel(id, { by: 'ada' })
    await oneWaits()
    letThrough()
    await Promise.all([approving, cancelling])
    await late.end()
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'cancelled',
      counts: { cancelled: 3 },
    })
    expect(await stage.statuses()).toEqual({ open: 3 })
  })

  test('reopens items that a worker returns after a cancel', async () => {
    const stage = await staged(pool, 's13', 2)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [] })
    const stopping = new AbortController()
    // While the first message is in flight, the worker is stopped and the run is cancelled.
    stage.wire.refuse = () => {
      stopping.abort()
      return undefined
    }
    stage.wire.onPublish = async () => void (await stage.replays.cancel(id, { by: 'ada' }))
    await stage.replayer.turn(stopping.signal)
    await stage.replayer.sweep()
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'cancelled',
      counts: { published: 1, queued: 0, cancelled: 1 },
    })
    expect(await stage.statuses()).toEqual({ replaying: 1, open: 1 })
  })

  test('waits for the outcome of items in flight when it is cancelled during a broker outage', async () => {
    const stage = await staged(pool, 's14', 2)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [] })
    stage.wire.onPublish = async () => {
      // The second turn finds the run cancelled.
      await stage.replays.cancel(id, { by: 'ada' }).catch(() => undefined)
      throw new Error('no answer')
    }
    await stage.replayer.turn()
    await stage.replayer.sweep()
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 2, queued: 0 } })
    stage.wire.say(
      ...stage.wire.sent.map(({ replayId }) => ({ replayId, outcome: 'handled' as const, at: 0 })),
    )
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ resolved: 2 })
  })

  test('does not pause again after a resume because of earlier outcomes', async () => {
    const stage = await staged(pool, 's15', 2)
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const health = () => {
      asked.resolve()
      return answer.promise
    }
    const replayer = stage.replays.replayer({ sources: [{ source: stage.wire, health }] })
    const { id } = await stage.started({ canary: [] })
    const turn = replayer.turn()
    await asked.promise
    await stage.replays.pause(id, { by: 'ada' })
    await stage.replays.resume(id, { by: 'ada' })
    answer.reject(new Error('the payment API answers 503'))
    expect(await turn).toMatchObject({ published: 0 })
    expect(await stage.replays.run(id)).toMatchObject({ state: 'running', counts: { queued: 2 } })
  })

  test('is claimed by one worker, also when another worker read it before the claim', async () => {
    const stage = await staged(pool, 's16', 2)
    const { id } = await stage.started({ canary: [], ratePerSecond: 1 })
    const slow = poolOn(pool.options.connectionString ?? '')
    slow.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
      const slowly = ({ text, ...rest }: { readonly text: string }, ...args: unknown[]) => {
        const waits = `r.state = 'running' and (select true from pg_advisory_xact_lock(4711))`
        const isPick = text?.includes('for no key update of r skip locked')
        return query(
          { ...rest, text: isPick ? text.replace(`r.state = 'running'`, waits) : text },
          ...args,
        )
      }
      const asked = (first: { readonly text: string } | string, ...args: unknown[]) =>
        typeof first === 'string' ? query(first, ...args) : slowly(first, ...args)
      Object.assign(client, { query: asked })
    })
    const holder = await pool.connect()
    await holder.query('begin; select pg_advisory_xact_lock(4711)')
    const { replays } = catalog({ pool: slow })
    const other = replays.replayer({ sources: [{ source: stage.wire }] }).turn()
    await oneWaits()
    const [out, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    stage.wire.onPublish = () => {
      stage.wire.onPublish = undefined
      out.resolve()
      return gate.promise
    }
    const first = stage.replayer.turn()
    await out.promise
    await holder.query('commit')
    holder.release()
    expect(await other).toBeUndefined()
    gate.resolve()
    expect(await first).toMatchObject({ published: 1 })
    expect(await stage.replays.run(id)).toMatchObject({ counts: { queued: 1, published: 1 } })
    await slow.end()
  })

  test('pauses when too many of the latest items fail again, and reports the share', async () => {
    const stage = await staged(pool, 's4', 200)
    stage.wire.answer = () => (stage.wire.sent.length > 60 ? 'fails' : 'handled')
    const run = await stage.ended((await stage.started({ ratePerSecond: 100 })).id)
    expect(run.state).toBe('paused')
    expect(run.pauseReason).toMatch(/\d+ of the latest \d+ messages failed again/)
    expect(run.counts.failed_again).toBeLessThan(60)
    expect(run.counts.queued).toBeGreaterThan(50)
  })

  test('pauses when no more confirmations arrive, with few items published', async () => {
    const stage = await staged(pool, 's5', 400)
    let isBroken = false
    stage.wire.answer = () => (isBroken ? 'silent' : 'handled')
    const { id } = await stage.started({ ratePerSecond: 2_000, outcomeTimeout: '1h' })
    await stage.until(id, ({ counts }) => counts.resolved >= 100)
    isBroken = true
    const before = stage.wire.sent.length
    const run = await stage.ended(id)
    expect(run).toMatchObject({
      state: 'paused',
      pauseReason: expect.stringContaining('No confirmation') as unknown,
    })
    expect(stage.wire.sent.length - before).toBeLessThanOrEqual(50)
  })

  test('does not pause while unread confirmations exist', async () => {
    const stage = await staged(pool, 's11', 60)
    const { id } = await stage.started({ canary: [], ratePerSecond: 2_000, outcomeTimeout: '1h' })
    expect(await stage.replayer.turn()).toMatchObject({ published: 50 })
    await pool.query(
      `update redrive_catalog.replay_run set resumed_at = resumed_at - interval '1 minute' where id = $1`,
      [id],
    )
    await pool.query(
      `update redrive_catalog.replay_item set published_at = published_at - interval '1 minute' where run_id = $1`,
      [id],
    )
    expect(await stage.replayer.turn()).toMatchObject({ published: 10 })
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'running',
      counts: { resolved: 50 },
    })
  })

  test('pauses when the health check fails or the lag is above its limit', async () => {
    const stage = await staged(pool, 's6', 10)
    const problem = { health: 'the payment API answers 503' as string | undefined, lag: 0 }
    const replayer = stage.replays.replayer({
      sources: [
        {
          source: stage.wire,
          health: async () => {
            if (problem.health !== undefined) throw new Error(problem.health)
          },
          lag: async () => problem.lag,
          maxLag: 5,
        },
      ],
    })
    const { id } = await stage.started({ canary: [] })
    await replayer.turn()
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'paused',
      pauseReason: expect.stringContaining('503') as unknown,
      counts: { queued: 10 },
    })
    problem.health = undefined
    problem.lag = 6
    await stage.replays.resume(id, { by: 'ada' })
    await replayer.turn()
    expect((await stage.replays.run(id))?.pauseReason).toContain('6 messages behind')
    expect(stage.wire.sent).toHaveLength(0)
  })

  test('pauses when every publish fails, and publishes the same replay ids after a resume', async () => {
    const stage = await staged(pool, 's7', 4)
    stage.wire.refuse = () => new Error('no route')
    const { id } = await stage.started({ canary: [] })
    const run = await stage.ended(id)
    expect(run).toMatchObject({
      state: 'paused',
      pauseReason: expect.stringContaining('no route') as unknown,
    })
    stage.wire.refuse = undefined
    await stage.replays.resume(id, { by: 'ada' })
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 4 } })
    expect(stage.wire.sent).toHaveLength(4)
  })

  test('pauses when the broker returns a message, which is then certainly not published', async () => {
    const stage = await staged(pool, 'returned', 3)
    stage.wire.refuse = () => new RedriveError('UNROUTABLE', 'No queue accepts "orders".')
    const { id } = await stage.started({ canary: [] })
    expect(await stage.replayer.turn()).toMatchObject({ published: 0, failed: 3 })
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'paused',
      pauseReason: 'The broker returned a message: No queue accepts "orders".',
      counts: { queued: 3 },
    })
    // Nothing was published, so all are open again and none waits for an outcome.
    expect(await stage.replays.cancel(id, { by: 'ada' })).toMatchObject({
      counts: { cancelled: 3 },
    })
    expect(await stage.statuses()).toEqual({ open: 3 })
  })

  test('returns unsent items to the queue when its signal is aborted', async () => {
    const stage = await staged(pool, 's8', 10)
    const { id } = await stage.started({ canary: [], ratePerSecond: 20 })
    const abort = new AbortController()
    stage.wire.onPublish = async () => abort.abort()
    await stage.replayer.turn(abort.signal)
    const counts = (await stage.replays.run(id))?.counts
    expect(counts).toMatchObject({ queued: 10 - stage.wire.sent.length, claimed: 0, publishing: 0 })
    expect(stage.wire.sent.length).toBeLessThan(10)
  })
})

describe('a worker that has claimed a run', () => {
  test('keeps its lease while it waits for broker confirmations', async () => {
    const stage = await staged(pool, 'k1', 1)
    const { id } = await stage.started({ canary: [] })
    const { promise: proof, resolve: prove } = Promise.withResolvers<void>()
    stage.wire.onPublish = () => proof
    const turn = stage.replayer.turn()
    const leaseOf = async () => {
      const [row] = await rows<{ at: number }>(
        pool,
        'select extract(epoch from lease_until)::float8 as at from redrive_catalog.replay_item where run_id = $1',
        [id],
      )
      return row?.at ?? 0
    }
    await expect.poll(leaseOf).toBeGreaterThan(0)
    const first = await leaseOf()
    // Longer than the first lease.
    await expect.poll(leaseOf, { timeout: 20_000 }).toBeGreaterThan(first + 5)
    expect(await stage.replayer.turn()).toBeUndefined()
    prove()
    expect(await turn).toMatchObject({ published: 1, fenced: 0 })
    expect(stage.wire.sent).toHaveLength(1)
  })

  test('does not renew an expired lease', async () => {
    const stage = await staged(pool, 'k2', 1)
    const { id } = await stage.started({ canary: [] })
    const { promise: proof, resolve: prove } = Promise.withResolvers<void>()
    stage.wire.onPublish = () => proof
    const turn = stage.replayer.turn()
    await expect.poll(() => stage.wire.sent.length).toBe(1)
    await lapse(id)
    // Time for two more renewals.
    const until = performance.now() + 2_500
    await expect.poll(() => performance.now(), { timeout: 5_000 }).toBeGreaterThan(until)
    stage.wire.onPublish = undefined
    expect(await stage.replayer.turn()).toMatchObject({ published: 1 })
    prove()
    expect(await turn).toMatchObject({ published: 0, fenced: 1 })
  })
})

describe('a worker that crashed or is late', () => {
  test('leaves its claimed items to another worker, which publishes them once', async () => {
    const stage = await staged(pool, 'w1', 5)
    const { id } = await stage.started({ canary: [] })
    const dying = stage.replays.replayer({
      sources: [{ source: stage.wire, health: () => Promise.withResolvers<void>().promise }],
    })
    void dying.turn()
    await stage.seen(id, ({ counts }) => counts.claimed > 0)
    await lapse(id)
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 5 } })
    expect(stage.wire.sent).toHaveLength(5)
  })

  test('publishes with the same replay id as its successor, and cannot change the item', async () => {
    const stage = await staged(pool, 'w2', 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [] })
    const late = Promise.withResolvers<void>()
    stage.wire.onPublish = () => late.promise
    const stale = stage.replayer.turn()
    await stage.seen(id, ({ counts }) => counts.publishing === 1 && stage.wire.sent.length === 1)
    await lapse(id)
    stage.wire.onPublish = undefined
    const other = stage.replays.replayer({ sources: [{ source: stage.wire }] })
    expect(await other.turn()).toMatchObject({ published: 1, fenced: 0 })
    late.resolve()
    expect(await stale).toMatchObject({ published: 0, fenced: 1 })
    const [first, second] = stage.wire.sent
    expect(second?.replayId).toBe(first?.replayId)
    expect(await stage.replays.items({ run: id })).toMatchObject([
      { state: 'published', publishCount: 2 },
    ])
  })

  test('blocks other workers from its run while items are in flight, so that no message overtakes another', async () => {
    const stage = await staged(pool, 'w4', 20)
    const { id } = await stage.started({ canary: [], ratePerSecond: 10 })
    const { promise: proof, resolve: prove } = Promise.withResolvers<void>()
    stage.wire.onPublish = () => proof
    const busy = stage.replayer.turn()
    await stage.seen(id, ({ counts }) => counts.publishing > 0)
    const other = stage.replays.replayer({ sources: [{ source: stage.wire }] })
    expect(await other.turn()).toBeUndefined()
    prove()
    // As many as are due. A slow machine publishes more in one turn, to keep the rate.
    expect((await busy)?.published).toBeGreaterThan(0)
    await expect.poll(async () => (await other.turn())?.published ?? 0).toBeGreaterThan(0)
  })

  test('does not publish items that another worker has claimed since', async () => {
    const stage = await staged(pool, 'w5', 1)
    const { id } = await stage.started({ canary: [] })
    const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const workers = waits.map(({ promise }) =>
      stage.replays.replayer({ sources: [{ source: stage.wire, health: () => promise }] }),
    )
    const stale = workers[0]?.turn()
    await stage.seen(id, ({ counts }) => counts.claimed === 1)
    await lapse(id)
    const token = await tokenOf(id)
    const next = workers[1]?.turn()
    while ((await tokenOf(id)) === token) await stage.replays.run(id)
    waits[0].resolve()
    expect(await stale).toMatchObject({ published: 0, fenced: 1 })
    expect(stage.wire.sent).toHaveLength(0)
    waits[1].resolve()
    expect(await next).toMatchObject({ published: 1, fenced: 0 })
  })

  test('does not mark an item as published while another worker is publishing it', async () => {
    const stage = await staged(pool, 'w6', 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [] })
    const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    stage.wire.onPublish = () => waits[stage.wire.sent.length - 1]?.promise ?? Promise.resolve()
    const stale = stage.replayer.turn()
    await stage.seen(id, ({ counts }) => counts.publishing === 1 && stage.wire.sent.length === 1)
    await lapse(id)
    const other = stage.replays.replayer({ sources: [{ source: stage.wire }] })
    const next = other.turn()
    await stage.seen(id, ({ counts }) => counts.publishing === 1 && stage.wire.sent.length === 2)
    waits[0].resolve()
    expect(await stale).toMatchObject({ published: 0, fenced: 1 })
    expect(await stage.replays.items({ run: id })).toMatchObject([{ state: 'publishing' }])
    waits[1].resolve()
    expect(await next).toMatchObject({ published: 1 })
  })

  test('leaves an item that waits for its outcome if it may have published before the cancel', async () => {
    const stage = await staged(pool, 'w3', 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [], outcomeTimeout: '1s' })
    const never = Promise.withResolvers<void>()
    stage.wire.onPublish = () => never.promise
    void stage.replayer.turn()
    await stage.seen(id, ({ counts }) => counts.publishing === 1)
    await stage.replays.cancel(id, { by: 'ada' })
    expect(await stage.statuses()).toEqual({ replaying: 1 })
    await lapse(id)
    await stage.replayer.sweep()
    expect(await stage.replays.items({ run: id })).toMatchObject([{ state: 'published' }])
    never.resolve()
  })
})

describe('an unconfirmed outcome', () => {
  test('is unknown, is not replayed again, and waits for a user', async () => {
    const stage = await staged(pool, 'u1', 3)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [], outcomeTimeout: '1s' })
    await stage.until(id, ({ counts }) => counts.unknown === 3)
    expect(await stage.statuses()).toEqual({ unknown: 3 })
    expect(await stage.unsettledCount()).toBe(3)
    const ids = await stage.ids()
    expect((await stage.plan({ selection: { ids } })).skipped).toEqual({ in_run: 3 })
    const [one = '', two = '', three = ''] = ids
    expect(await stage.replays.setOutcome([one], { as: 'resolved', by: 'ada' })).toEqual({
      changed: 1,
      skipped: [],
    })
    expect(await stage.replays.setOutcome([one, two], { as: 'open', by: 'ada' })).toEqual({
      changed: 1,
      skipped: [one],
    })
    expect(await stage.statuses()).toEqual({ resolved: 1, open: 1, unknown: 1 })
    expect(await stage.unsettledCount()).toBe(2)
    // A late confirmation still counts.
    const replayId = stage.wire.sent[2]?.replayId ?? ''
    stage.wire.say({ replayId, outcome: 'already_handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.catalog.deadLetter(three)).toMatchObject({ status: 'resolved' })
    // An intended second replay has another replay id.
    stage.wire.answer = () => 'handled'
    await stage.ended((await stage.started({ selection: { ids: [two] } })).id)
    expect(stage.wire.sent).toHaveLength(4)
    expect(stage.wire.sent[3]?.replayId).not.toBe(stage.wire.sent[1]?.replayId)
    expect(stage.wire.sent[3]?.deadLetter.delivery.key).toBe(
      stage.wire.sent[1]?.deadLetter.delivery.key,
    )
  })

  /** Creates a dead letter with an unconfirmed replay that a user has reopened. */
  async function reopened(name: string) {
    const stage = await staged(pool, name, 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [], outcomeTimeout: '1s' })
    await stage.until(id, ({ counts }) => counts.unknown === 1)
    await stage.replays.setOutcome(await stage.ids(), { as: 'open', by: 'ada' })
    const [sent] = stage.wire.sent
    if (sent === undefined) throw new Error('Nothing was sent.')
    return { stage, sent }
  }

  test('set by a user stays when a late copy is dropped, and changes when a late copy was handled', async () => {
    const { stage, sent } = await reopened('u6')
    const { replayId } = sent
    stage.wire.say({ replayId, outcome: 'dropped', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ open: 1 })
    stage.wire.say({ replayId, outcome: 'handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ resolved: 1 })
    expect(await stage.unsettledCount()).toBe(0)
  })

  test('is counted once when the replay fails later, although the dead letter was discarded', async () => {
    const { stage, sent } = await reopened('u7')
    await stage.catalog.discard({ ids: await stage.ids() }, { by: 'ada' })
    expect(await stage.unsettledCount()).toBe(0)
    stage.wire.back(failedAgain(sent.deadLetter, sent.replayId))
    await stage.catalog.ingest(stage.wire)
    expect(await stage.statuses()).toEqual({ open: 1 })
    expect(await stage.unsettledCount()).toBe(1)
  })

  test('is resolved when a late copy was handled after the dead letter was discarded and restored', async () => {
    const { stage, sent } = await reopened('u8')
    const ids = await stage.ids()
    await stage.catalog.discard({ ids }, { by: 'ada' })
    await stage.catalog.restore({ ids }, { by: 'ada' })
    expect(await stage.statuses()).toEqual({ open: 1 })
    stage.wire.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ resolved: 1 })
    expect(await stage.counts()).toEqual({ open: 0, replaying: 0, undecided: 0 })
  })

  test.each(['ids', 'group', 'selection'] as const)(
    'that arrives while the dead letter is discarded keeps it discarded, and a restore by %s makes it resolved',
    async (how) => {
      const { stage, sent } = await reopened(`u9 ${how}`)
      const ids = await stage.ids()
      await stage.catalog.discard({ ids }, { by: 'ada' })
      stage.wire.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
      await stage.replayer.confirm()
      expect(await stage.statuses()).toEqual({ discarded: 1 })
      if (how === 'selection') {
        const query = { groups: [stage.group] }
        const { id, hash } = await stage.catalog.select({ action: 'restore', query, by: 'ada' })
        await stage.catalog.applySelection('restore', id, { hash, by: 'ada' })
      } else {
        await stage.catalog.restore(how === 'ids' ? { ids } : { group: stage.group }, { by: 'ada' })
      }
      expect(await stage.statuses()).toEqual({ resolved: 1 })
      expect(await stage.counts()).toEqual({ open: 0, replaying: 0, undecided: 0 })
    },
  )

  test('is resolved when the inbox has its key', async () => {
    const stage = await staged(pool, 'u2', 2, (at) => ({ delivery: { key: `key-${at}` } }))
    stage.wire.answer = () => 'silent'
    const asked: string[] = []
    const replayer = stage.replays.replayer({
      sources: [
        {
          source: stage.wire,
          handled: async (keys) => {
            asked.push(...keys)
            return new Set(['key-1'])
          },
        },
      ],
    })
    const { id } = await stage.started({ canary: [], outcomeTimeout: '1s' })
    await replayer.turn()
    const endsAt = Date.now() + 10_000
    while ((await stage.replays.run(id))?.state === 'running' && Date.now() < endsAt)
      await replayer.sweep()
    expect(asked.toSorted()).toEqual(['key-0', 'key-1'])
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'done',
      counts: { resolved: 1, unknown: 1 },
    })
    expect(await stage.statuses()).toEqual({ resolved: 1, unknown: 1 })
  })

  test('of a forced replay is not confirmed by its old key', async () => {
    const stage = await staged(pool, 'u11', 1, () => ({ delivery: { key: 'order-9' } }))
    stage.wire.answer = () => 'silent'
    const handled = async () => new Set(['order-9'])
    const replayer = stage.replays.replayer({ sources: [{ source: stage.wire, handled }] })
    const { id } = await stage.started({ change: { force: true }, outcomeTimeout: '1s' })
    await replayer.turn()
    const endsAt = Date.now() + 10_000
    while ((await stage.statuses())['replaying'] === 1 && Date.now() < endsAt) {
      await replayer.sweep()
    }
    expect(await stage.replays.run(id)).toMatchObject({ counts: { unknown: 1 } })
  })

  test('pauses the canary, unless the plan sets onUnconfirmed to continue', async () => {
    const stage = await staged(pool, 'u3', 10)
    stage.wire.answer = () => 'silent'
    const careful = await stage.ended((await stage.started({ outcomeTimeout: '1s' })).id)
    expect(careful).toMatchObject({ state: 'paused', counts: { unknown: 1, queued: 9 } })
    expect(careful.pauseReason).toContain('--proof returns')
    await stage.replays.cancel(careful.id, { by: 'ada' })
    const request = { outcomeTimeout: '1s', onUnconfirmed: 'continue', canary: [2] } as const
    const bold = await stage.ended((await stage.started(request)).id)
    expect(bold).toMatchObject({ state: 'done', counts: { unknown: 9 } })
  })

  test('does not count as a failure if consumers never confirm', async () => {
    const stage = await staged(pool, 'u7', 600)
    const failing = (share: number) => {
      let count = 0
      stage.wire.answer = () => (++count % share === 0 ? 'fails' : 'silent')
    }
    const request = {
      onUnconfirmed: 'continue',
      canary: [],
      ratePerSecond: 100,
      outcomeTimeout: '1s',
    } as const
    failing(20)
    const { id } = await stage.started(request)
    const most = await stage.until(id, (run) => run.counts.queued < 350 || run.state !== 'running')
    expect(most).toMatchObject({ state: 'running' })
    expect(most.counts.failed_again).toBeGreaterThan(10)
    failing(2)
    const stopped = await stage.ended(id)
    expect(stopped).toMatchObject({ state: 'paused' })
    expect(stopped.pauseReason).toContain('failed again')
  })

  test('is expired when the consumer dropped the message', async () => {
    const stage = await staged(pool, 'u4', 1)
    stage.wire.answer = () => 'dropped'
    const { counts } = await stage.ended((await stage.started()).id)
    expect(counts).toMatchObject({ expired: 1, resolved: 0 })
    expect(await stage.statuses()).toEqual({ expired: 1 })
    expect(await stage.unsettledCount()).toBe(0)
  })

  test('stays in the broker while the catalog cannot store it', async () => {
    const stage = await staged(pool, 'u6', 1)
    await stage.started()
    await stage.replayer.turn()
    const away = poolOn('postgres://redrive@127.0.0.1:1/nowhere', 2)
    const { replays } = catalog({ pool: away })
    await refusal(replays.replayer({ sources: [{ source: stage.wire }] }).confirm())
    await away.end()
    expect(stage.wire.released).toBe(0)
    expect(await stage.replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
    expect(stage.wire.released).toBe(1)
  })

  test('is confirmed although another source fails, which is reported', async () => {
    const stage = await staged(pool, 'u9', 1)
    const away = await staged(pool, 'u10', 0)
    away.wire.confirmations = () => Promise.reject(new Error('the broker is gone'))
    const sources = [{ source: away.wire }, { source: stage.wire }]
    await stage.started()
    await stage.replayer.turn()
    const { message } = await refusal(stage.replays.replayer({ sources }).confirm())
    expect(message).toBe('the broker is gone')
    expect(await stage.statuses()).toEqual({ resolved: 1 })
  })

  test('with an unknown replay id is ignored', async () => {
    const stage = await staged(pool, 'u5', 1)
    stage.wire.say(
      { replayId: 'not-a-replay', outcome: 'handled', at: 0 },
      { replayId: '0c6b7f0e-1111-4222-8333-944455556666', outcome: 'handled', at: 0 },
    )
    expect(await stage.replayer.confirm()).toEqual({ resolved: 0, expired: 0 })
    expect(await stage.statuses()).toEqual({ open: 1 })
  })
})

describe('a changed message', () => {
  const body = (value: unknown) => ({ delivery: { bytes: Buffer.from(JSON.stringify(value)) } })
  const sentBody = (stage: Awaited<ReturnType<typeof staged>>, at = 0): unknown =>
    JSON.parse(Buffer.from(stage.wire.sent[at]?.deadLetter.delivery.bytes ?? []).toString())

  test('has a key made of its content after an edit, and contains the key that it replaces', async () => {
    const stage = await staged(pool, 'c1', 1, () => ({
      delivery: { key: 'order-9', bytes: Buffer.from('{"a":1}') },
    }))
    const ids = await stage.ids()
    const edit = Buffer.from('{"a":2}')
    const run = await stage.started({ selection: { ids }, change: { edit } })
    expect(await stage.replays.change(run.id)).toEqual({ edit })
    stage.wire.answer = () => 'fails'
    await stage.ended(run.id)
    const [first] = stage.wire.sent
    expect(first?.deadLetter.delivery).toMatchObject({ bytes: edit, replaces: 'order-9' })
    expect(first?.deadLetter.delivery.key).toMatch(/^redrive-/)
    // The edited message failed again, and the original is kept.
    const [deadLetter = ''] = ids
    const before = await stage.catalog.beforeEdit(deadLetter, 1)
    expect((await bodyOf(before?.pieces())).toString()).toBe('{"a":1}')
    expect(await stage.catalog.beforeEdit(deadLetter, 2)).toBeUndefined()
    expect(await stage.catalog.cycles(deadLetter)).toMatchObject([
      {
        cycle: 1,
        // Without the signature, which only the message contains.
        replayId: first?.replayId.slice(0, 36),
        attempts: 3,
        reason: 'attempts_exhausted',
        history: [{ message: 'card 4711 declined' }],
        isEdited: true,
        preview: { a: 1 },
      },
    ])
    expect((await stage.catalog.deadLetter(ids[0] ?? ''))?.drained.delivery.bytes.toString()).toBe(
      '{"a":2}',
    )
    // After a second edit, it still replaces the original message.
    const change = { edit: Buffer.from('{"a":3}') }
    const overrides = ['failed_recently'] as const
    await stage.ended((await stage.started({ selection: { ids }, change, overrides })).id)
    const second = stage.wire.sent[1]?.deadLetter.delivery
    expect(second?.replaces).toBe('order-9')
    expect(second?.key).not.toBe(first?.deadLetter.delivery.key)
  })

  test('has only its body changed by a patch, in the same way for all messages', async () => {
    const stage = await staged(pool, 'c2', 3, (at) => body({ order: at, price: '12', tags: ['x'] }))
    const patch = [
      { op: 'test', path: '/price', value: '12' },
      { op: 'replace', path: '/price', value: 12 },
      { op: 'add', path: '/tags/-', value: 'repaired' },
    ] as const
    const run = await stage.ended((await stage.started({ change: { patch } })).id)
    expect(run).toMatchObject({ state: 'done', isChanged: true, counts: { resolved: 3 } })
    expect(sentBody(stage, 1)).toEqual({ order: 1, price: 12, tags: ['x', 'repaired'] })
  })

  test('is skipped if the body is not JSON, fails a patch test, or has a number that would change', async () => {
    const bodies = ['{"n":1}', 'no json', '{"n":12345678901234567890}', '{"m":1}', '{"n":1.10}']
    const stage = await staged(pool, 'c3', bodies.length, (at) => ({
      delivery: { bytes: Buffer.from(bodies[at] ?? '') },
    }))
    const planned = await stage.plan({
      change: { patch: [{ op: 'replace', path: '/n', value: 2 }] },
    })
    expect(planned).toMatchObject({
      counts: { planned: 2, skipped: 3 },
      skipped: { patch_failed: 3 },
    })
    const items = await stage.replays.items({ run: planned.id, states: ['skipped'] })
    expect(items.map(({ reason }) => reason)).toEqual([
      'patch_failed: the body is not JSON',
      'patch_failed: the body has a number with more digits than JavaScript can keep',
      expect.stringContaining('operation 1 (replace /n)') as unknown,
    ])
  })

  test('is skipped if a path names no element of an array', async () => {
    const bodies = ['[1,2]', '{"lines":[{"price":1}]}']
    const stage = await staged(pool, 'arrays', 2, (at) => ({
      delivery: { bytes: Buffer.from(bodies[at] ?? '') },
    }))
    const skipped = async (path: string, op: 'add' | 'replace') => {
      const { counts } = await stage.plan({ change: { patch: [{ op, path, value: 'EUR' }] } })
      return counts.skipped
    }
    expect(await skipped('/currency', 'replace')).toBe(2)
    expect(await skipped('/currency', 'add')).toBe(1)
    expect(await skipped('/lines/currency', 'add')).toBe(2)
    expect(await skipped('/lines/01', 'replace')).toBe(2)
    expect(await skipped('/lines/2', 'add')).toBe(2)
    expect(await skipped('/lines/1', 'add')).toBe(1)
    expect(await skipped('/lines/-', 'add')).toBe(1)
    expect(await skipped('/lines/0/price', 'replace')).toBe(1)
    expect(await skipped('/2', 'add')).toBe(0)
  })

  test('cannot change the prototype of all objects', async () => {
    const stage = await staged(pool, 'c4', 1, () => body({ a: 1 }))
    for (const path of ['/__proto__/polluted', '/constructor/prototype/polluted']) {
      const { counts } = await stage.plan({ change: { patch: [{ op: 'add', path, value: true }] } })
      expect(counts).toMatchObject({ planned: 0, skipped: 1 })
    }
    expect({}).not.toHaveProperty('polluted')
  })

  test('has a new key with force, and replaces no key', async () => {
    const stage = await staged(pool, 'c5', 1, () => ({ delivery: { key: 'order-9' } }))
    await stage.ended((await stage.started({ change: { force: true } })).id)
    const delivery = stage.wire.sent[0]?.deadLetter.delivery
    expect(delivery?.key).toMatch(/^redrive-/)
    expect(delivery).not.toHaveProperty('replaces')
  })

  test('is skipped while the dead letter is in a run', async () => {
    const stage = await staged(pool, 'c6', 1)
    const ids = await stage.ids()
    stage.wire.answer = () => 'silent'
    await stage.started()
    const planned = await stage.plan({ selection: { ids }, change: { edit: Buffer.from('{}') } })
    expect(planned.skipped).toEqual({ in_run: 1 })
  })

  test('stays encrypted if payloads are encrypted, also in the run', async () => {
    const keys = { current: 'k1', get: () => Buffer.alloc(32, 7) }
    const stage = await staged(pool, 'c7', 1, () => body({ secret: 'before' }), { keys })
    const edit = Buffer.from('{"secret":"after"}')
    const run = await stage.started({ selection: { ids: await stage.ids() }, change: { edit } })
    const [row] = await rows<{ change: { edit: string } }>(
      pool,
      'select change from redrive_catalog.replay_run where id = $1',
      [run.id],
    )
    expect(Buffer.from(row?.change.edit ?? '', 'base64').toString()).not.toContain('after')
    await stage.ended(run.id)
    expect(sentBody(stage)).toEqual({ secret: 'after' })
  })

  test('must match the JSON Schema of the source', async () => {
    const stage = await staged(pool, 'c8', 3, (at) =>
      body(at === 0 ? { price: 1 } : { price: 'one' }),
    )
    const schema = {
      type: 'object',
      properties: { price: { type: 'number' } },
      required: ['price'],
    }
    await stage.replays.setSchema({ source: 'c8', schema })
    const plain = await stage.plan()
    expect(plain).toMatchObject({ counts: { planned: 1 }, skipped: { schema_invalid: 2 } })
    const [item] = await stage.replays.items({ run: plain.id, states: ['skipped'], limit: 1 })
    expect(item?.reason).toContain('body/price must be number')
    const repaired = await stage.plan({
      change: { patch: [{ op: 'replace', path: '/price', value: 5 }] },
    })
    expect(repaired.counts).toMatchObject({ planned: 3, skipped: 0 })
  })

  test('is not replayed if the checks of the plan took too long', async () => {
    const names = ['a'.repeat(40), 'fine', 'fine']
    const stage = await staged(pool, 'c10', 3, (at) => body({ name: `${names[at]}!` }), {
      schemaTimeout: '500ms',
    })
    const schema = { properties: { name: { pattern: '^(a+)+$|^fine' } } }
    await stage.replays.setSchema({ source: 'c10', schema })
    const { id, counts, skipped } = await stage.plan()
    expect(skipped).toEqual({ schema_invalid: 1, not_checked: 2 })
    expect(counts).toMatchObject({ planned: 0 })
    const items = await stage.replays.items({ run: id, states: ['skipped'] })
    expect(items.map(({ reason }) => reason ?? '').sort()).toEqual([
      ...Array.from(
        { length: 2 },
        () =>
          'not_checked: the schema checks of this plan took longer than 500 ms. Plan fewer dead letters, or simplify the schema',
      ),
      'schema_invalid: the check of the body took longer than 1000 ms',
    ])
    const ids = (await stage.ids()).slice(1)
    const others = await catalog({ pool }).replays.plan({ selection: { ids }, by: 'ada' })
    expect(others.counts).toMatchObject({ planned: 2 })
  })

  test('is checked in limited time for every schema', async () => {
    const stage = await staged(pool, 'c9', 1, () => body({ name: `${'a'.repeat(40)}!` }))
    const schema = { properties: { name: { pattern: '^(a+)+$' } } }
    await stage.replays.setSchema({ source: 'c9', schema })
    const { skipped } = await stage.plan()
    expect(skipped).toEqual({ schema_invalid: 1 })
    const { message } = await refusal(
      stage.replays.setSchema({ source: 'c9', schema: { type: 'nonsense' } }),
    )
    expect(message).toContain('The JSON Schema of the source is invalid')
    expect(
      (await refusal(stage.replays.setSchema({ source: 'missing', schema: {} }))).message,
    ).toContain('The catalog has no source "missing"')
  })
})

describe('a restored catalog', () => {
  test('is frozen until a user acknowledges the restore', async () => {
    const stage = await staged(pool, 'r1', 3)
    const { id } = await stage.started({ canary: [] })
    await stage.replayer.turn()
    // The OID of a restored table differs from the OID that is stored in it.
    await pool.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    expect(await stage.replayer.turn()).toBeUndefined()
    expect(await stage.replays.freezeReason()).toContain('restored')
    const ids = (await stage.ids()).slice(0, 1)
    expect(await stage.plan({ selection: { ids } })).toMatchObject({ state: 'planned' })
    const other = await staged(pool, 'r2', 1)
    const { message } = await refusal(other.started())
    expect(message).toContain('frozen')
    expect(message).toContain('redrive replay acknowledge-restore')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
    expect(await stage.replays.freezeReason()).toBeUndefined()
    expect(await stage.ended(id)).toMatchObject({ state: 'done' })
  })

  test('is detected by the next approval, before any turn', async () => {
    const stage = await staged(pool, 'r7', 1)
    await pool.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    const other = await staged(pool, 'r8', 1)
    expect((await refusal(other.started())).message).toContain('frozen')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
  })

  test('with the same identity is detected by the counter, and by a file after a restart', async () => {
    const stage = await staged(pool, 'r3', 3)
    const restoreMarkerFile = join(await mkdtemp(join(tmpdir(), 'redrive-')), 'mark')
    const replayer = stage.replays.replayer({
      sources: [{ source: stage.wire }],
      restoreMarkerFile,
    })
    await replayer.turn()
    expect(Number(await readFile(restoreMarkerFile, 'utf8'))).toBeGreaterThan(0)
    await pool.query('update redrive_catalog.replay_epoch set beat = beat - 1')
    await stage.started()
    expect(await replayer.turn()).toBeUndefined()
    expect(await stage.replays.freezeReason()).toContain('earlier state')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
    expect(await replayer.turn()).toMatchObject({ published: 1 })
    await writeFile(restoreMarkerFile, '999999999999999')
    const restarted = stage.replays.replayer({
      sources: [{ source: stage.wire }],
      restoreMarkerFile,
    })
    expect(await restarted.turn()).toBeUndefined()
    expect(await stage.replays.freezeReason()).toContain('earlier state')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
  })

  test('is not reported for two concurrent turns of one process', async () => {
    const stage = await staged(pool, 'r6', 1)
    const { late, reached, letThrough } = lateCommits()
    const { replays } = catalog({ pool: late })
    const replayer = replays.replayer({ sources: [{ source: stage.wire }] })
    const first = replayer.turn()
    await reached
    // The first turn has increased the counter, but the change is not committed yet.
    const second = replayer.turn()
    await oneWaits()
    letThrough()
    await Promise.all([first, second])
    expect(await stage.replays.freezeReason()).toBeUndefined()
    await late.end()
  })

  test('is not frozen again by a turn that started before the acknowledgement', async () => {
    const stage = await staged(pool, 'r9', 1)
    await stage.replayer.turn()
    await pool.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    const acknowledging = await pool.connect()
    await acknowledging.query('begin')
    await acknowledging.query(
      'update redrive_catalog.replay_epoch set identity = redrive_catalog.identity()',
    )
    // Reads the earlier state, and waits for the acknowledgement.
    const turn = stage.replayer.turn()
    await oneWaits()
    await acknowledging.query('commit')
    acknowledging.release()
    await turn
    expect(await stage.replays.freezeReason()).toBeUndefined()
  })

  test('is detected each time the same backup is restored, and can be acknowledged each time', async () => {
    const stage = await staged(pool, 'r10', 1)
    const [epoch] = await rows<{ beat: string }>(
      pool,
      'select beat from redrive_catalog.replay_epoch',
    )
    for (let time = 1; time <= 3; time++) {
      const replayer = stage.replays.replayer({ sources: [{ source: stage.wire }] })
      await replayer.turn()
      await pool.query('update redrive_catalog.replay_epoch set beat = $1', [epoch?.beat])
      expect(await replayer.turn()).toBeUndefined()
      expect(await stage.replays.freezeReason()).toContain('earlier state')
      await stage.replays.acknowledgeRestore({ by: 'ada' })
      await replayer.turn()
      expect(await stage.replays.freezeReason()).toBeUndefined()
    }
  })

  test('can be checked by a role that owns no tables', async () => {
    await pool.query(`do $$ begin create role replay_reader login; exception when duplicate_object then null; end $$;
      grant usage on schema redrive_catalog to replay_reader;
      grant select, insert, update, delete on all tables in schema redrive_catalog to replay_reader;
      grant usage on all sequences in schema redrive_catalog to replay_reader`)
    const url = new URL(`postgres://replay_reader@127.0.0.1/redrive_catalog_replay_safety`)
    url.port = String(pool.options.port ?? new URL(pool.options.connectionString ?? '').port)
    const reader = poolOn(url.href, 4)
    const stage = await staged(pool, 'r4', 1)
    const restricted = await staged(reader, 'r5', 1).finally(() => undefined)
    expect(await restricted.ended((await restricted.started()).id)).toMatchObject({ state: 'done' })
    expect(await stage.statuses()).toEqual({ open: 1 })
    await reader.end()
  })
})

describe('retention', () => {
  test('keeps a day while one of its dead letters is being replayed', async () => {
    const DAY = 86_400_000
    const stage = await staged(pool, 'd1', 2, () => ({ at: Date.now() - 40 * DAY }))
    stage.wire.answer = () => 'silent'
    const request = { overrides: ['too_old'], inboxRetention: '60d', canary: [] } as const
    const { id } = await stage.started(request)
    await stage.replayer.turn()
    await pool.query(
      `update redrive_catalog.source_day d set last_ingested_at = now() - interval '30 days'
        from redrive_catalog.source s where s.id = d.source_id and s.name = 'd1'`,
    )
    await stage.catalog.maintain()
    expect(await stage.statuses()).toEqual({ replaying: 2 })
    stage.wire.say(
      ...stage.wire.sent.map(({ replayId }) => ({ replayId, outcome: 'handled' as const, at: 0 })),
    )
    await stage.replayer.confirm()
    await stage.catalog.maintain()
    expect(await stage.statuses()).toEqual({ resolved: 2 })
    await pool.query(
      `update redrive_catalog.dead_letter d set settled_at = now() - interval '15 days'
        from redrive_catalog.source s where s.id = d.source_id and s.name = 'd1'`,
    )
    await stage.catalog.maintain()
    expect(await stage.statuses()).toEqual({})
    expect(await stage.replays.run(id)).toMatchObject({ counts: { resolved: 2 } })
  })
})
