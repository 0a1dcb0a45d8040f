import { describe, expect, test } from 'vitest'
import { catalog, migrate, migrationSql } from '../src/index.ts'
import { Pool } from 'pg'
import { dead, emptyDatabase, ListSource, NOW, poolOn, refusal, rows } from './rig.ts'

const url = await emptyDatabase('redrive_catalog_schema')

describe('migrate', () => {
  test('applies each migration once, also from several processes; its text does the same and can be run again', async () => {
    const pool = poolOn(url)
    try {
      expect((await refusal(catalog({ pool }).ingest(new ListSource([])))).message).toContain(
        'migrate(pool)',
      )
      const applied = await Promise.all([migrate(pool), migrate(pool), migrate(pool)])
      expect(applied.flat()).toEqual([
        '0001-tables',
        '0002-partitions',
        '0003-replay',
        '0004-unreleased',
        '0005-counts',
        '0006-failures',
        '0007-filters',
        '0008-set-aside',
        '0009-due-times',
        '0010-retention',
        '0011-selections',
        '0012-outcomes',
        '0013-open-counts',
        '0014-continued-groups',
        '0015-merged-groups',
        '0016-regrouping',
        '0017-replay-keys',
        '0018-named-parts',
        '0019-set-aside-replays',
      ])
      await pool.query(migrationSql())
      const tables = async () =>
        rows(
          pool,
          `select relname, relkind from pg_class where relnamespace = 'redrive_catalog'::regnamespace order by 1`,
        )
      const byMigrate = await tables()
      await pool.query('drop schema redrive_catalog cascade')
      await pool.query(migrationSql())
      expect(await tables()).toEqual(byMigrate)
      expect(await migrate(pool)).toEqual([])
    } finally {
      await pool.end()
    }
  })

  test('lets a role that can only read and write rows create and drop the partitions of days', async () => {
    const pool = poolOn(url)
    const role = 'redrive_catalog_clerk'
    await migrate(pool)
    await pool.query(`drop role if exists ${role}`)
    await pool.query(`create role ${role};
      grant usage on schema redrive_catalog to ${role};
      grant select, insert, update, delete on all tables in schema redrive_catalog to ${role};
      grant usage on all sequences in schema redrive_catalog to ${role}`)
    const clerk = new Pool({ connectionString: url, options: `-c role=${role}` })
    const made = catalog({ pool: clerk })
    try {
      const old = dead({ at: NOW - 50 * 86_400_000 })
      expect(await made.ingest(new ListSource([old]))).toMatchObject({ added: 1 })
      await clerk.query(
        `update redrive_catalog.source_day set last_ingested_at = now() - interval '100 days'`,
      )
      expect(await made.maintain()).toMatchObject({ dropped: 1 })
    } finally {
      await clerk.end()
      await pool.query(`drop owned by ${role}; drop role ${role}`)
      await pool.end()
    }
  })
})
