import { expect, test } from 'vitest'
import { migrated, rows } from './rig.ts'
import { staged } from './replay-stage.ts'
import { catalog } from '../src/index.ts'

const pool = await migrated('redrive_catalog_retention_runs')

const aged = (id: string, days: number) =>
  pool.query(
    `update redrive_catalog.replay_run set planned_at = now() - $2 * interval '1 day',
        ended_at = case when ended_at is not null then now() - $2 * interval '1 day' end where id = $1`,
    [id, days],
  )
const itemsOf = async (id: string) =>
  (await rows(pool, 'select from redrive_catalog.replay_item where run_id = $1', [id])).length

test('deletes an ended run and its items after 90 days, and keeps its counts in the sums', async () => {
  const stage = await staged(pool, 'ended', 3)
  const { id } = await stage.started({ canary: [] })
  await stage.ended(id)
  const stats = async () =>
    (await stage.catalog.replayStats()).find(({ source }) => source === 'ended')?.items
  const before = await stats()
  expect(before).toMatchObject({ resolved: 3 })
  await aged(id, 89)
  expect(await stage.catalog.maintain()).toMatchObject({ runs: 0 })
  expect(await itemsOf(id)).toBe(3)
  await aged(id, 91)
  expect(await stage.catalog.maintain()).toMatchObject({ runs: 1 })
  expect(await stage.replays.run(id)).toBeUndefined()
  expect(await itemsOf(id)).toBe(0)
  expect(await stats()).toEqual(before)
})

test('never deletes a run in progress, or one with an outcome that a user must set', async () => {
  const stage = await staged(pool, 'live', 2)
  stage.wire.answer = () => 'silent'
  const { id } = await stage.started({ canary: [] })
  await stage.replayer.turn()
  await aged(id, 400)
  expect(await stage.catalog.maintain()).toMatchObject({ runs: 0 })
  expect(await stage.replays.run(id)).toMatchObject({ state: 'running' })

  await pool.query(
    `update redrive_catalog.replay_run set state = 'done', ended_at = now() - interval '400 days' where id = $1`,
    [id],
  )
  for (const state of ['unknown', 'not_returned', 'expired']) {
    await pool.query('update redrive_catalog.replay_item set state = $2 where run_id = $1', [
      id,
      state,
    ])
    expect(await stage.catalog.maintain()).toMatchObject({ runs: 0 })
    expect(await itemsOf(id)).toBe(2)
  }
  // They failed again since: the items belong to an earlier cycle.
  await pool.query('update redrive_catalog.dead_letter set cycle = cycle + 1')
  expect(await stage.catalog.maintain()).toMatchObject({ runs: 1 })
})

test('uses the retention of the options', async () => {
  const stage = await staged(pool, 'brief', 1, undefined, { runRetention: '1d' })
  const { id } = await stage.started({ canary: [] })
  await stage.ended(id)
  await aged(id, 2)
  expect(await stage.catalog.maintain()).toMatchObject({ runs: 1 })
  expect(() => catalog({ pool, runRetention: '1m' })).toThrow(
    "runRetention: expected '1h' to '3650d'",
  )
})
