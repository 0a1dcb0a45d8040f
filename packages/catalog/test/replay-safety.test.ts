import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalog } from '../src/index.ts'
import { migrated, poolOn, refusal, rows } from './rig.ts'
import { failedAgain, staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_replay_safety')

/** As if the lease of everything that is claimed or being published had run out. */
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

/** A pool on the same database whose commits wait until they are let through. */
function lateCommits() {
  const late = poolOn(pool.options.connectionString ?? '')
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  late.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
    const held = async (...args: unknown[]) => {
      if (args[0] !== 'commit') return query(...args)
      reached.resolve()
      await gate.promise
      return query(...args)
    }
    Object.assign(client, { query: held })
  })
  return { late, reached: reached.promise, letThrough: gate.resolve }
}

/** Who waits for a lock of another. */
const WAITING = `
select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const oneWaits = async () => {
  await expect.poll(async () => (await rows(pool, WAITING)).length).toBe(1)
}

describe('stopping a run', () => {
  test('paused, nothing more goes out; resumed, it goes on', async () => {
    const stage = await staged(pool, 's1', 20)
    const { id } = await stage.started({ ramp: [] })
    await stage.replays.pause(id, { by: 'ada' })
    expect(await stage.replayer.turn()).toBeUndefined()
    expect(stage.wire.sent).toHaveLength(0)
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'paused',
      pausedBecause: 'paused by ada',
    })
    expect(await stage.replays.resume(id, { by: 'eve' })).toMatchObject({ resumedBy: 'eve' })
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 20 } })
  })

  test('cancelled, what is not out is open again and what is out settles', async () => {
    const stage = await staged(pool, 's2', 30)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [10, 20] })
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
    expect(await stage.openCount()).toBe(20)
    expect((await refusal(stage.replays.cancel(id, { by: 'ada' }))).message).toContain('over')
  })

  test('cancelled while a worker has claimed some, those never go out', async () => {
    const stage = await staged(pool, 's3', 5)
    const { id } = await stage.started({ ramp: [] })
    let isFirst = true
    // Cancels after the first has gone out and before the rest is marked.
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

  test('cancelled before it was approved, it leaves alone what another run has', async () => {
    const stage = await staged(pool, 's10', 3)
    stage.wire.answer = () => 'silent'
    const plan = await stage.plan()
    const { id } = await stage.started({ ramp: [] })
    await stage.replayer.turn()
    expect(await stage.replays.cancel(plan.id, { by: 'ada' })).toMatchObject({
      state: 'cancelled',
      counts: { cancelled: 3 },
    })
    expect(await stage.statuses()).toEqual({ replaying: 3 })
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 3 } })
  })

  test('cancelled, what the broker did not confirm may be out, and waits for its proof', async () => {
    const stage = await staged(pool, 's9', 2)
    stage.wire.refuse = (message) =>
      stage.wire.sent.push(message) > 0 ? new Error('no answer') : undefined
    const { id } = await stage.started({ ramp: [1] })
    await stage.replayer.turn()
    const run = await stage.replays.cancel(id, { by: 'ada' })
    expect(run.counts).toMatchObject({ published: 1, cancelled: 1 })
    expect(await stage.statuses()).toEqual({ replaying: 1, open: 1 })
  })

  test('cancelled while it is approved, all of it is open again', async () => {
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

  test('cancelled while a worker has some in hand, those that it gives back are not forgotten', async () => {
    const stage = await staged(pool, 's13', 2)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [] })
    const stopping = new AbortController()
    // With the first on its way the worker is told to stop, and the run is cancelled.
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

  test('cancelled while the broker does not answer, what may be out waits for its proof', async () => {
    const stage = await staged(pool, 's14', 2)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [] })
    stage.wire.onPublish = async () => {
      // The second finds it cancelled.
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

  test('resumed, it does not pause for what was found out before', async () => {
    const stage = await staged(pool, 's15', 2)
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const health = () => {
      asked.resolve()
      return answer.promise
    }
    const replayer = stage.replays.replayer({ sources: [{ source: stage.wire, health }] })
    const { id } = await stage.started({ ramp: [] })
    const turn = replayer.turn()
    await asked.promise
    await stage.replays.pause(id, { by: 'ada' })
    await stage.replays.resume(id, { by: 'ada' })
    answer.reject(new Error('the payment API answers 503'))
    expect(await turn).toMatchObject({ published: 0 })
    expect(await stage.replays.run(id)).toMatchObject({ state: 'running', counts: { queued: 2 } })
  })

  test('is in the hands of one worker, also when another looked before it was taken', async () => {
    const stage = await staged(pool, 's16', 2)
    const { id } = await stage.started({ ramp: [], ratePerSecond: 1 })
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

  test('pauses when the latest fail again, and tells the share', async () => {
    const stage = await staged(pool, 's4', 200)
    stage.wire.answer = () => (stage.wire.sent.length > 60 ? 'fails' : 'handled')
    const run = await stage.ended((await stage.started({ ratePerSecond: 100 })).id)
    expect(run.state).toBe('paused')
    expect(run.pausedBecause).toMatch(/\d+ of the latest \d+ failed again/)
    expect(run.counts.refailed).toBeLessThan(60)
    expect(run.counts.queued).toBeGreaterThan(50)
  })

  test('pauses when no proof comes any more, with few out', async () => {
    const stage = await staged(pool, 's5', 400)
    let isBroken = false
    stage.wire.answer = () => (isBroken ? 'silent' : 'handled')
    const { id } = await stage.started({ ratePerSecond: 2_000, confirmWithin: '1h' })
    await stage.until(id, ({ counts }) => counts.resolved >= 100)
    isBroken = true
    const before = stage.wire.sent.length
    const run = await stage.ended(id)
    expect(run).toMatchObject({
      state: 'paused',
      pausedBecause: expect.stringContaining('No proof') as unknown,
    })
    expect(stage.wire.sent.length - before).toBeLessThanOrEqual(50)
  })

  test('does not pause for proofs that are there and that nobody has taken yet', async () => {
    const stage = await staged(pool, 's11', 60)
    const { id } = await stage.started({ ramp: [], ratePerSecond: 2_000, confirmWithin: '1h' })
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

  test('pauses when the consumers say that they cannot take more, or are too far behind', async () => {
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
          mostLag: 5,
        },
      ],
    })
    const { id } = await stage.started({ ramp: [] })
    await replayer.turn()
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'paused',
      pausedBecause: expect.stringContaining('503') as unknown,
      counts: { queued: 10 },
    })
    problem.health = undefined
    problem.lag = 6
    await stage.replays.resume(id, { by: 'ada' })
    await replayer.turn()
    expect((await stage.replays.run(id))?.pausedBecause).toContain('6 behind')
    expect(stage.wire.sent).toHaveLength(0)
  })

  test('pauses when the broker takes nothing, and publishes the same replay ids afterwards', async () => {
    const stage = await staged(pool, 's7', 4)
    stage.wire.refuse = () => new Error('no route')
    const { id } = await stage.started({ ramp: [] })
    const run = await stage.ended(id)
    expect(run).toMatchObject({
      state: 'paused',
      pausedBecause: expect.stringContaining('no route') as unknown,
    })
    stage.wire.refuse = undefined
    await stage.replays.resume(id, { by: 'ada' })
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 4 } })
    expect(stage.wire.sent).toHaveLength(4)
  })

  test('ended by its signal, what was not sent goes back to the queue', async () => {
    const stage = await staged(pool, 's8', 10)
    const { id } = await stage.started({ ramp: [], ratePerSecond: 20 })
    const abort = new AbortController()
    stage.wire.onPublish = async () => abort.abort()
    await stage.replayer.turn(abort.signal)
    const counts = (await stage.replays.run(id))?.counts
    expect(counts).toMatchObject({ queued: 10 - stage.wire.sent.length, claimed: 0, publishing: 0 })
    expect(stage.wire.sent.length).toBeLessThan(10)
  })
})

describe('a worker that has a run', () => {
  test('keeps it for as long as the broker takes for its proof', async () => {
    const stage = await staged(pool, 'k1', 1)
    const { id } = await stage.started({ ramp: [] })
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
    // Longer than the lease was at first.
    await expect.poll(leaseOf, { timeout: 20_000 }).toBeGreaterThan(first + 5)
    expect(await stage.replayer.turn()).toBeUndefined()
    prove()
    expect(await turn).toMatchObject({ published: 1, fenced: 0 })
    expect(stage.wire.sent).toHaveLength(1)
  })

  test('does not get back what has lapsed', async () => {
    const stage = await staged(pool, 'k2', 1)
    const { id } = await stage.started({ ramp: [] })
    const { promise: proof, resolve: prove } = Promise.withResolvers<void>()
    stage.wire.onPublish = () => proof
    const turn = stage.replayer.turn()
    await expect.poll(() => stage.wire.sent.length).toBe(1)
    await lapse(id)
    // Two more chances to keep it.
    const until = performance.now() + 2_500
    await expect.poll(() => performance.now(), { timeout: 5_000 }).toBeGreaterThan(until)
    stage.wire.onPublish = undefined
    expect(await stage.replayer.turn()).toMatchObject({ published: 1 })
    prove()
    expect(await turn).toMatchObject({ published: 0, fenced: 1 })
  })
})

describe('a worker that is gone or late', () => {
  test('leaves what it had claimed to another, who publishes it once', async () => {
    const stage = await staged(pool, 'w1', 5)
    const { id } = await stage.started({ ramp: [] })
    const dying = stage.replays.replayer({
      sources: [{ source: stage.wire, health: () => Promise.withResolvers<void>().promise }],
    })
    void dying.turn()
    await stage.seen(id, ({ counts }) => counts.claimed > 0)
    await lapse(id)
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 5 } })
    expect(stage.wire.sent).toHaveLength(5)
  })

  test('publishes with the same replay id as whoever took over, and is not heard', async () => {
    const stage = await staged(pool, 'w2', 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [] })
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
      { state: 'published', publishes: 2 },
    ])
  })

  test('keeps others from the same run while it has some of it in hand, so that nothing is overtaken', async () => {
    const stage = await staged(pool, 'w4', 20)
    const { id } = await stage.started({ ramp: [], ratePerSecond: 10 })
    const { promise: proof, resolve: prove } = Promise.withResolvers<void>()
    stage.wire.onPublish = () => proof
    const busy = stage.replayer.turn()
    await stage.seen(id, ({ counts }) => counts.publishing > 0)
    const other = stage.replays.replayer({ sources: [{ source: stage.wire }] })
    expect(await other.turn()).toBeUndefined()
    prove()
    expect(await busy).toMatchObject({ published: 10 })
    expect(await other.turn()).toMatchObject({ published: 10 })
  })

  test('does not send what someone else has claimed meanwhile', async () => {
    const stage = await staged(pool, 'w5', 1)
    const { id } = await stage.started({ ramp: [] })
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

  test('does not say that it is published while someone else is publishing it', async () => {
    const stage = await staged(pool, 'w6', 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [] })
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

  test('that may have published before the run was cancelled leaves an item that waits for its proof', async () => {
    const stage = await staged(pool, 'w3', 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [], confirmWithin: '1s' })
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

describe('an outcome that nobody proves', () => {
  test('is unknown, is not replayed by anyone, and waits for a person', async () => {
    const stage = await staged(pool, 'u1', 3)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [], confirmWithin: '1s' })
    await stage.until(id, ({ counts }) => counts.unknown === 3)
    expect(await stage.statuses()).toEqual({ unknown: 3 })
    expect(await stage.openCount()).toBe(3)
    const ids = await stage.ids()
    expect((await stage.plan({ selection: { ids } })).skipped).toEqual({ in_run: 3 })
    const [one = '', two = '', three = ''] = ids
    expect(await stage.replays.decide([one], { as: 'resolved', by: 'ada' })).toEqual({
      changed: 1,
      skipped: [],
    })
    expect(await stage.replays.decide([one, two], { as: 'open', by: 'ada' })).toEqual({
      changed: 1,
      skipped: [one],
    })
    expect(await stage.statuses()).toEqual({ resolved: 1, open: 1, unknown: 1 })
    expect(await stage.openCount()).toBe(2)
    // A proof that comes late is one.
    const replayId = stage.wire.sent[2]?.replayId ?? ''
    stage.wire.say({ replayId, outcome: 'already_handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.catalog.deadLetter(three)).toMatchObject({ status: 'resolved' })
    // Replayed again on purpose, it has another replay id.
    stage.wire.answer = () => 'handled'
    await stage.ended((await stage.started({ selection: { ids: [two] } })).id)
    expect(stage.wire.sent).toHaveLength(4)
    expect(stage.wire.sent[3]?.replayId).not.toBe(stage.wire.sent[1]?.replayId)
    expect(stage.wire.sent[3]?.deadLetter.delivery.key).toBe(
      stage.wire.sent[1]?.deadLetter.delivery.key,
    )
  })

  /** One dead letter whose replay nobody proved, so that someone said it may be replayed again. */
  async function reopened(name: string) {
    const stage = await staged(pool, name, 1)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ ramp: [], confirmWithin: '1s' })
    await stage.until(id, ({ counts }) => counts.unknown === 1)
    await stage.replays.decide(await stage.ids(), { as: 'open', by: 'ada' })
    const [sent] = stage.wire.sent
    if (sent === undefined) throw new Error('Nothing was sent.')
    return { stage, sent }
  }

  test('that a person decided about stays decided when a late copy is dropped, and not when one was handled', async () => {
    const { stage, sent } = await reopened('u6')
    const { replayId } = sent
    stage.wire.say({ replayId, outcome: 'dropped', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ open: 1 })
    stage.wire.say({ replayId, outcome: 'handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ resolved: 1 })
    expect(await stage.openCount()).toBe(0)
  })

  test('is counted once when it fails after all, though it was discarded meanwhile', async () => {
    const { stage, sent } = await reopened('u7')
    await stage.catalog.discard({ ids: await stage.ids() }, { by: 'ada' })
    expect(await stage.openCount()).toBe(0)
    stage.wire.back(failedAgain(sent.deadLetter, sent.replayId))
    await stage.catalog.ingest(stage.wire)
    expect(await stage.statuses()).toEqual({ open: 1 })
    expect(await stage.openCount()).toBe(1)
  })

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
    const { id } = await stage.started({ ramp: [], confirmWithin: '1s' })
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

  test('of what was forced is not proven by the key it had before', async () => {
    const stage = await staged(pool, 'u11', 1, () => ({ delivery: { key: 'order-9' } }))
    stage.wire.answer = () => 'silent'
    const handled = async () => new Set(['order-9'])
    const replayer = stage.replays.replayer({ sources: [{ source: stage.wire, handled }] })
    const { id } = await stage.started({ change: { force: true }, confirmWithin: '1s' })
    await replayer.turn()
    const endsAt = Date.now() + 10_000
    while ((await stage.statuses())['replaying'] === 1 && Date.now() < endsAt) {
      await replayer.sweep()
    }
    expect(await stage.replays.run(id)).toMatchObject({ counts: { unknown: 1 } })
  })

  test('stops a ramp, unless the plan says that the consumers never prove anything', async () => {
    const stage = await staged(pool, 'u3', 10)
    stage.wire.answer = () => 'silent'
    const careful = await stage.ended((await stage.started({ confirmWithin: '1s' })).id)
    expect(careful).toMatchObject({ state: 'paused', counts: { unknown: 1, queued: 9 } })
    expect(careful.pausedBecause).toContain('go_on')
    await stage.replays.cancel(careful.id, { by: 'ada' })
    const request = { confirmWithin: '1s', unproven: 'go_on', ramp: [2] } as const
    const bold = await stage.ended((await stage.started(request)).id)
    expect(bold).toMatchObject({ state: 'done', counts: { unknown: 9 } })
  })

  test('counts as one that did not fail, where consumers never prove anything', async () => {
    const stage = await staged(pool, 'u7', 600)
    const failing = (share: number) => {
      let count = 0
      stage.wire.answer = () => (++count % share === 0 ? 'fails' : 'silent')
    }
    const request = {
      unproven: 'go_on',
      ramp: [],
      ratePerSecond: 100,
      confirmWithin: '1s',
    } as const
    failing(20)
    const { id } = await stage.started(request)
    const most = await stage.until(id, (run) => run.counts.queued < 350 || run.state !== 'running')
    expect(most).toMatchObject({ state: 'running' })
    expect(most.counts.refailed).toBeGreaterThan(10)
    failing(2)
    const stopped = await stage.ended(id)
    expect(stopped).toMatchObject({ state: 'paused' })
    expect(stopped.pausedBecause).toContain('failed again')
  })

  test('is expired when the consumer dropped it', async () => {
    const stage = await staged(pool, 'u4', 1)
    stage.wire.answer = () => 'dropped'
    const { counts } = await stage.ended((await stage.started()).id)
    expect(counts).toMatchObject({ expired: 1, resolved: 0 })
    expect(await stage.statuses()).toEqual({ expired: 1 })
    expect(await stage.openCount()).toBe(0)
  })

  test('stays with the broker while it cannot be written down', async () => {
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

  test('is proven although another source is in trouble, which is told', async () => {
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

  test('of someone else says nothing', async () => {
    const stage = await staged(pool, 'u5', 1)
    stage.wire.say(
      { replayId: 'not-a-replay', outcome: 'handled', at: 0 },
      { replayId: '0c6b7f0e-1111-4222-8333-944455556666', outcome: 'handled', at: 0 },
    )
    expect(await stage.replayer.confirm()).toEqual({ resolved: 0, expired: 0 })
    expect(await stage.statuses()).toEqual({ open: 1 })
  })
})

describe('a change on the way', () => {
  const body = (value: unknown) => ({ delivery: { bytes: Buffer.from(JSON.stringify(value)) } })
  const sentBody = (stage: Awaited<ReturnType<typeof staged>>, at = 0): unknown =>
    JSON.parse(Buffer.from(stage.wire.sent[at]?.deadLetter.delivery.bytes ?? []).toString())

  test('edited, it has a key made of its content and names the one it stands in for', async () => {
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
    // What failed again is the edited one, and the original is kept.
    const kept = await rows<{ bytes: Buffer }>(
      pool,
      'select bytes from redrive_catalog.payload_before where dead_letter_id = $1',
      [ids[0]],
    )
    expect(kept.map(({ bytes }) => bytes.toString())).toEqual(['{"a":1}'])
    expect((await stage.catalog.deadLetter(ids[0] ?? ''))?.drained.delivery.bytes.toString()).toBe(
      '{"a":2}',
    )
    // Edited again, it still stands in for the message that came first.
    const change = { edit: Buffer.from('{"a":3}') }
    const overrides = ['failing_again'] as const
    await stage.ended((await stage.started({ selection: { ids }, change, overrides })).id)
    const second = stage.wire.sent[1]?.deadLetter.delivery
    expect(second?.replaces).toBe('order-9')
    expect(second?.key).not.toBe(first?.deadLetter.delivery.key)
  })

  test('patched, every body is changed in the same way and nothing else is', async () => {
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

  test('is not made of what is no JSON, lacks what the patch tests, or has a number that would change', async () => {
    const bodies = ['{"n":1}', 'no json', '{"n":12345678901234567890}', '{"m":1}', '{"n":1.10}']
    const stage = await staged(pool, 'c3', bodies.length, (at) => ({
      delivery: { bytes: Buffer.from(bodies[at] ?? '') },
    }))
    const planned = await stage.plan({
      change: { patch: [{ op: 'replace', path: '/n', value: 2 }] },
    })
    expect(planned).toMatchObject({
      counts: { planned: 2, skipped: 3 },
      skipped: { not_changeable: 3 },
    })
    const items = await stage.replays.items({ run: planned.id, states: ['skipped'] })
    expect(items.map(({ reason }) => reason)).toEqual([
      'not_changeable: its body is not JSON',
      'not_changeable: a number in it cannot be kept exactly',
      expect.stringContaining('operation 1 (replace /n)') as unknown,
    ])
  })

  test('cannot reach the prototype of everything', async () => {
    const stage = await staged(pool, 'c4', 1, () => body({ a: 1 }))
    for (const path of ['/__proto__/polluted', '/constructor/prototype/polluted']) {
      const { counts } = await stage.plan({ change: { patch: [{ op: 'add', path, value: true }] } })
      expect(counts).toMatchObject({ planned: 0, skipped: 1 })
    }
    expect({}).not.toHaveProperty('polluted')
  })

  test('by force, it has a new key and stands in for nothing', async () => {
    const stage = await staged(pool, 'c5', 1, () => ({ delivery: { key: 'order-9' } }))
    await stage.ended((await stage.started({ change: { force: true } })).id)
    const delivery = stage.wire.sent[0]?.deadLetter.delivery
    expect(delivery?.key).toMatch(/^redrive-/)
    expect(delivery).not.toHaveProperty('replaces')
  })

  test('is refused while the dead letter is in a run', async () => {
    const stage = await staged(pool, 'c6', 1)
    const ids = await stage.ids()
    stage.wire.answer = () => 'silent'
    await stage.started()
    const planned = await stage.plan({ selection: { ids }, change: { edit: Buffer.from('{}') } })
    expect(planned.skipped).toEqual({ in_run: 1 })
  })

  test('and payloads that are encrypted stay so, in the run as well', async () => {
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

  test('must give what the consumers expect', async () => {
    const stage = await staged(pool, 'c8', 3, (at) =>
      body(at === 0 ? { price: 1 } : { price: 'one' }),
    )
    const schema = {
      type: 'object',
      properties: { price: { type: 'number' } },
      required: ['price'],
    }
    await stage.replays.keepSchema({ source: 'c8', schema })
    const plain = await stage.plan()
    expect(plain).toMatchObject({ counts: { planned: 1 }, skipped: { invalid: 2 } })
    const [item] = await stage.replays.items({ run: plain.id, states: ['skipped'], most: 1 })
    expect(item?.reason).toContain('body/price must be number')
    const repaired = await stage.plan({
      change: { patch: [{ op: 'replace', path: '/price', value: 5 }] },
    })
    expect(repaired.counts).toMatchObject({ planned: 3, skipped: 0 })
  })

  test('is checked in bounded time, whatever the schema', async () => {
    const stage = await staged(pool, 'c9', 1, () => body({ name: `${'a'.repeat(40)}!` }))
    const schema = { properties: { name: { pattern: '^(a+)+$' } } }
    await stage.replays.keepSchema({ source: 'c9', schema })
    const { skipped } = await stage.plan()
    expect(skipped).toEqual({ invalid: 1 })
    const { message } = await refusal(
      stage.replays.keepSchema({ source: 'c9', schema: { type: 'nonsense' } }),
    )
    expect(message).toContain('cannot be used')
    expect(
      (await refusal(stage.replays.keepSchema({ source: 'nobody', schema: {} }))).message,
    ).toContain('no source')
  })
})

describe('a catalog that was restored', () => {
  test('is frozen until someone acknowledges it', async () => {
    const stage = await staged(pool, 'r1', 3)
    const { id } = await stage.started({ ramp: [] })
    await stage.replayer.turn()
    // A restored table has another number than the one that is written in it.
    await pool.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    expect(await stage.replayer.turn()).toBeUndefined()
    expect(await stage.replays.frozenBecause()).toContain('restored')
    const ids = (await stage.ids()).slice(0, 1)
    expect(await stage.plan({ selection: { ids } })).toMatchObject({ state: 'planned' })
    const other = await staged(pool, 'r2', 1)
    const { message } = await refusal(other.started())
    expect(message).toContain('frozen')
    expect(message).toContain('redrive replay acknowledge-restore')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
    expect(await stage.replays.frozenBecause()).toBeUndefined()
    expect(await stage.ended(id)).toMatchObject({ state: 'done' })
  })

  test('is noticed from the first moment on, and by whoever approves next', async () => {
    const stage = await staged(pool, 'r7', 1)
    await pool.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    const other = await staged(pool, 'r8', 1)
    expect((await refusal(other.started())).message).toContain('frozen')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
  })

  test('in place is noticed by who remembers more, and by a file after a restart', async () => {
    const stage = await staged(pool, 'r3', 3)
    const witness = join(await mkdtemp(join(tmpdir(), 'redrive-')), 'mark')
    const replayer = stage.replays.replayer({ sources: [{ source: stage.wire }], witness })
    await replayer.turn()
    expect(Number(await readFile(witness, 'utf8'))).toBeGreaterThan(0)
    await pool.query('update redrive_catalog.replay_epoch set beat = beat - 1')
    await stage.started()
    expect(await replayer.turn()).toBeUndefined()
    expect(await stage.replays.frozenBecause()).toContain('earlier state')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
    expect(await replayer.turn()).toMatchObject({ published: 1 })
    await writeFile(witness, '999999999999999')
    const restarted = stage.replays.replayer({ sources: [{ source: stage.wire }], witness })
    expect(await restarted.turn()).toBeUndefined()
    expect(await stage.replays.frozenBecause()).toContain('earlier state')
    await stage.replays.acknowledgeRestore({ by: 'ada' })
  })

  test('is not what two turns of one process look like', async () => {
    const stage = await staged(pool, 'r6', 1)
    const { late, reached, letThrough } = lateCommits()
    const { replays } = catalog({ pool: late })
    const replayer = replays.replayer({ sources: [{ source: stage.wire }] })
    const first = replayer.turn()
    await reached
    // The first has grown the mark, and nobody else sees it yet.
    const second = replayer.turn()
    await oneWaits()
    letThrough()
    await Promise.all([first, second])
    expect(await stage.replays.frozenBecause()).toBeUndefined()
    await late.end()
  })

  test('is not frozen again by who looked while someone acknowledged it', async () => {
    const stage = await staged(pool, 'r9', 1)
    await stage.replayer.turn()
    await pool.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    const acknowledging = await pool.connect()
    await acknowledging.query('begin')
    await acknowledging.query(
      'update redrive_catalog.replay_epoch set identity = redrive_catalog.identity()',
    )
    // Sees the state before, and waits for who acknowledges.
    const turn = stage.replayer.turn()
    await oneWaits()
    await acknowledging.query('commit')
    acknowledging.release()
    await turn
    expect(await stage.replays.frozenBecause()).toBeUndefined()
  })

  test('stays acknowledged, however often the same backup is restored', async () => {
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
      expect(await stage.replays.frozenBecause()).toContain('earlier state')
      await stage.replays.acknowledgeRestore({ by: 'ada' })
      await replayer.turn()
      expect(await stage.replays.frozenBecause()).toBeUndefined()
    }
  })

  test('can be told by a role that owns nothing', async () => {
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
  test('leaves a day alone while something of it is replayed', async () => {
    const DAY = 86_400_000
    const stage = await staged(pool, 'd1', 2, () => ({ at: Date.now() - 40 * DAY }))
    stage.wire.answer = () => 'silent'
    const request = { overrides: ['too_old'], inboxKeep: '60d', ramp: [] } as const
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
    expect(await stage.statuses()).toEqual({})
    expect(await stage.replays.run(id)).toMatchObject({ counts: { resolved: 2 } })
  })
})
