import { describe, expect, test } from 'vitest'
import { migrated, rows } from './rig.ts'
import { staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_replay_schedule')

/** When a worker last looked at a run. */
const CHECKED = `select claimed_at::text from redrive_catalog.replay_run where id = $1`

/** One item every 10 s. */
const SLOW = { ratePerSecond: 0.1, canary: [] } as const
const FAST = { ratePerSecond: 10_000, canary: [] } as const

describe('the rate of a run', () => {
  test('does not delay the runs of other sources', async () => {
    const slow = await Promise.all(['a', 'b', 'c', 'd'].map((name) => staged(pool, name, 5)))
    const fast = await staged(pool, 'fast', 40)
    const sources = [...slow, fast].map(({ wire }) => ({ source: wire }))
    const worker = fast.replays.replayer({ sources })
    for (const one of slow) await one.started(SLOW)
    for (const _ of slow) await worker.turn()
    expect(slow.map(({ wire }) => wire.sent.length)).toEqual([1, 1, 1, 1])
    // Nothing is due, and the worker does not wait until it is.
    expect(await worker.turn()).toBeUndefined()
    await fast.started(FAST)
    expect(await worker.turn()).toMatchObject({ published: 40 })
    expect(slow.map(({ wire }) => wire.sent.length)).toEqual([1, 1, 1, 1])
  })

  test('does not delay a faster run of the same source', async () => {
    const stage = await staged(pool, 'both', 45)
    const ids = await stage.ids()
    await stage.started({ selection: { ids: ids.slice(0, 5) }, ...SLOW })
    await stage.replayer.turn()
    await stage.started({ selection: { ids: ids.slice(5) }, ...FAST })
    expect(await stage.replayer.turn()).toMatchObject({ published: 40 })
    expect(await stage.replayer.turn()).toBeUndefined()
    expect(stage.wire.sent).toHaveLength(41)
  })

  test('is shared by the workers of one run', async () => {
    const stage = await staged(pool, 'shared', 200)
    const { id } = await stage.started({ ratePerSecond: 100, canary: [] })
    const workers = [1, 2, 3].map(() =>
      stage.catalog.replays.replayer({ sources: [{ source: stage.wire }] }),
    )
    const from = performance.now()
    const isRunning = async () => (await stage.replays.run(id))?.state === 'running'
    await Promise.all(
      workers.map(async (worker) => {
        while (await isRunning()) {
          await worker.turn()
          await worker.confirm()
          await worker.sweep()
        }
      }),
    )
    expect(stage.wire.sent).toHaveLength(200)
    // The last item is due 199 times 10 ms after the first.
    expect(Math.max(...stage.wire.sentAt) - from).toBeGreaterThanOrEqual(1_980)
    const places = stage.wire.sent.map(({ deadLetter }) => deadLetter.delivery.cycle.firstFailedAt)
    expect(places).toEqual(places.toSorted((a, b) => (a ?? 0) - (b ?? 0)))
  })
})

describe('a run that waits for outcomes', () => {
  test('does not take the turn of another run', async () => {
    const waiting = await Promise.all(['w1', 'w2', 'w3'].map((name) => staged(pool, name, 5)))
    const other = await staged(pool, 'other', 5)
    const sources = [...waiting, other].map(({ wire }) => ({ source: wire }))
    const worker = other.replays.replayer({ sources })
    for (const one of waiting) {
      one.wire.answer = () => 'silent'
      await one.started({ canary: [1, 4] })
    }
    for (const _ of waiting) await worker.turn()
    await other.started({ ...FAST, canary: [1] })
    expect(await worker.turn()).toMatchObject({ published: 1 })
    await worker.confirm()
    // The other runs were selected longer ago, so they are next. They wait for their confirmations.
    expect(await worker.turn()).toMatchObject({ published: 4 })
  })

  test('is checked again when an outcome arrives, and otherwise once a second', async () => {
    const stage = await staged(pool, 'checked', 5)
    stage.wire.answer = () => 'silent'
    const { id } = await stage.started({ canary: [1, 4] })
    await stage.replayer.turn()
    expect(await stage.replayer.turn()).toBeUndefined()
    const checkedAt = async () => (await rows(pool, CHECKED, [id]))[0]
    const before = await checkedAt()
    expect(await stage.replayer.turn()).toBeUndefined()
    expect(await checkedAt()).toEqual(before)
    const [sent] = stage.wire.sent
    stage.wire.say({ replayId: sent?.replayId ?? '', outcome: 'handled', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.replayer.turn()).toMatchObject({ published: 4 })
  })
})

describe('a message', () => {
  test('is not published if the last check of its run is too old', async () => {
    const stage = await staged(pool, 'late', 5)
    const { id } = await stage.started(FAST)
    // The first publish keeps the process busy for longer than a pause may take.
    stage.wire.refuse = () => {
      const endsAt = performance.now() + 600
      while (stage.wire.sent.length === 0 && performance.now() < endsAt);
      return undefined
    }
    expect(await stage.replayer.turn()).toMatchObject({ published: 1, failed: 0, fenced: 0 })
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 1, queued: 4 } })
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 5 } })
  })
})
