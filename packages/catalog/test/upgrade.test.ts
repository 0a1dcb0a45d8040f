import { expect, test } from 'vitest'
import { migrate } from '../src/index.ts'
import { OPEN_COUNTS } from '../src/migrations/0013-open-counts.ts'
import { migrated } from './rig.ts'
import { staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_upgrade')

/** Restores the schema before these migrations, with the counts as they were then. */
const BEFORE = `
alter table redrive_catalog.replay_run drop column due_at, drop column waiting_counts, drop column not_returned;
alter table redrive_catalog.source drop column confirmed_at;
drop index redrive_catalog.replay_item_content;
update redrive_catalog.failure_group set open_count = open_count + replaying_count + undecided_count;
alter table redrive_catalog.failure_group drop column replaying_count, drop column undecided_count;
delete from redrive_catalog.migration where name in ('0009-due-times', '0012-outcomes', '0013-open-counts')`

test('an upgrade gives roles of dead letters the same privileges on the new tables', async () => {
  const role = `redrive_reader_${process.pid}`
  await pool.query(
    `create role ${role}; grant select, insert on redrive_catalog.dead_letter to ${role}`,
  )
  try {
    await pool.query(OPEN_COUNTS.slice(OPEN_COUNTS.indexOf('do $grants$')))
    for (const table of [
      'set_aside',
      'set_aside_payload',
      'source_check',
      'selection',
      'selection_item',
    ]) {
      const { rows } = await pool.query(
        `select has_table_privilege($1, $2, 'insert') as may, has_table_privilege($1, $2, 'delete') as may_delete`,
        [role, `redrive_catalog.${table}`],
      )
      expect(rows).toEqual([{ may: true, may_delete: false }])
    }
  } finally {
    await pool.query(`drop owned by ${role}; drop role ${role}`)
  }
})

test('an upgrade counts the dead letters by status and keeps the confirmations and running runs', async () => {
  const stage = await staged(pool, 'orders', 6, () => ({ reason: 'broker_rejected' }))
  const [first = '', ...others] = await stage.ids()
  const request = { proof: 'confirmations', canary: [1, 3] } as const
  const done = await stage.started({ ...request, selection: { ids: [first] } })
  expect(await stage.ended(done.id)).toMatchObject({ counts: { resolved: 1 } })
  stage.wire.answer = () => 'silent'
  const selection = { ids: others.slice(0, 4) }
  const { id } = await stage.started({ ...request, selection, outcomeTimeout: '1s' })
  await stage.until(id, ({ state }) => state === 'paused')
  const counts = { open: 1, replaying: 3, undecided: 1 }
  expect(await stage.counts()).toEqual(counts)
  await pool.query(BEFORE)
  expect(await migrate(pool)).toEqual(['0009-due-times', '0012-outcomes', '0013-open-counts'])
  expect(await stage.counts()).toEqual(counts)
  expect((await stage.plan({ selection: { ids: others.slice(4) } })).options).toMatchObject({
    proofReason: 'confirmed_before',
  })
  await stage.replays.setOutcome(others, { as: 'resolved', by: 'ada' })
  await stage.replays.resume(id, { by: 'ada' })
  stage.wire.answer = () => 'handled'
  expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 4 } })
})
