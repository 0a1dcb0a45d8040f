import { isRedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { maintain, migrate, migrationSql, outbox, postgres, postgresSource } from '../src/index.ts'
import {
  costOf,
  type Database,
  emptyDatabase,
  ownDatabase,
  psql,
  TURN_SQL,
  turn,
  turnValues,
} from './database.ts'
import { OUTBOX } from '../src/migrations/0001-outbox.ts'
import { FUNCTIONS } from '../src/migrations/0002-functions.ts'
import { deadLetter, onRig, type Rig, refusal, settle } from './rig.ts'
import { poolOn } from './services.ts'

/** All migrations, in order. */
export const RELEASED = [
  '0001-outbox',
  '0002-functions',
  '0003-replays',
  '0004-retention',
  '0005-settings',
  '0006-maintenance',
  '0007-add',
  '0008-turn',
]

/** Every object of the schema, as text, to compare two ways of creating it. */
export const CATALOG = `
with own as (
  select c.* from pg_class c where c.relnamespace = 'redrive'::regnamespace and c.relkind in ('r', 'p', 'v', 'S', 'i', 'I', 'c')
)
select 'relation ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(array_to_string(c.reloptions, ','), '')
  || ' ' || coalesce(pg_get_expr(c.relpartbound, c.oid), '') || ' ' || coalesce(obj_description(c.oid), '') as line from own c
union all
select 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull
  || ' ' || a.attstorage::text || ' ' || a.attcollation || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
  || ' ' || coalesce(col_description(c.oid, a.attnum), '')
  from own c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
union all
select 'index ' || pg_get_indexdef(c.oid) from own c where c.relkind in ('i', 'I')
union all
select 'view ' || pg_get_viewdef(c.oid) from own c where c.relkind = 'v'
union all
select 'constraint ' || t.conname || ' ' || pg_get_constraintdef(t.oid) from pg_constraint t where t.connamespace = 'redrive'::regnamespace
union all
select 'function ' || pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'redrive'::regnamespace
union all
select 'applied ' || name from redrive.migration
order by 1`

async function catalogOf(pool: Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ line: string }>(CATALOG)
  return rows.map(({ line }) => line)
}

/** Columns that an index of the outbox or of a partition has, in its keys, expressions or predicate. */
const INDEXED = `
with part as (
  select 'redrive.outbox'::regclass as oid
  union all select inhrelid from pg_inherits where inhparent = 'redrive.outbox'::regclass
), used as (
  select i.indrelid, unnest(i.indkey::smallint[]) as number from pg_index i join part on part.oid = i.indrelid
  union all
  select i.indrelid, d.refobjsubid from pg_index i join part on part.oid = i.indrelid
    join pg_depend d on d.objid = i.indexrelid and d.refobjid = i.indrelid
)
select distinct a.attname::text as name from used u join pg_attribute a on a.attrelid = u.indrelid and a.attnum = u.number
where u.number > 0`

/** Creates a database with the schema of the first release. */
async function firstRelease(rig: Rig, url: string): Promise<Database> {
  const database = await emptyDatabase(rig, url)
  const names = ['0001-outbox', '0002-functions']
  await database.pool.query(`create schema redrive;
    create table redrive.migration (name text primary key, applied_at timestamptz not null default now())`)
  for (const [index, sql] of [OUTBOX, FUNCTIONS].entries()) {
    await database.pool.query(sql)
    await database.pool.query('insert into redrive.migration (name) values ($1)', [names[index]])
  }
  await database.pool.query(`select redrive.outbox_maintain('2 days', '14 days')`)
  return database
}

/** Finished rows of 30 and 40 days ago: some in the partition of their day, some in the default one. */
const OLD_ROWS = `
select redrive.outbox_make_partition((now() at time zone 'UTC')::date - 30);
insert into redrive.outbox (id, queue, status, due_at, delivered_at, failed_at, payload)
select redrive.uuid_v7(now() - days * interval '1 day'), 'ledger', status, null,
  case status when 'delivered' then now() - days * interval '1 day' end,
  case status when 'failed' then now() - days * interval '1 day' end, ''
from unnest(array[30, 40]) as days, unnest(array['delivered', 'failed']) as status`

const LAST_PARTITION = `'redrive.outbox_' || to_char((now() at time zone 'UTC')::date + 7, 'YYYYMMDD')`
const DROP_LAST_DAY = `do $$ begin execute 'drop table ' || ${LAST_PARTITION}; end $$`
const LAST_DAY = `select to_regclass(${LAST_PARTITION}) is not null as exists`

/** Mostly other bytes than ASCII. */
const CYRILLIC = Buffer.from(JSON.stringify({ text: 'Заказ оплачен. '.repeat(50) }))
/** Mostly ASCII, with bytes that PostgreSQL writes as backslash sequences. */
const ESCAPED = Buffer.from(`{"path":"C:\\\\x41\\\\377","text":"é\0${'.'.repeat(500)}Ж"}`)
/** Every byte, after text that looks like an escaped byte: backslashes before `x`, digits and a backslash. */
const BYTES = Buffer.concat([
  Buffer.from('\\x41\\101\\\\'),
  Buffer.from(Uint8Array.from({ length: 256 }, (_, value) => value)),
])

export function schema(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('the schema', () => {
    it(
      'is created once: a second migrate() changes nothing',
      on(async (rig) => {
        const { pool: own } = await emptyDatabase(rig, url)
        expect(await migrate(own)).toEqual(RELEASED)
        const before = await catalogOf(own)
        expect(await migrate(own)).toEqual([])
        expect(await catalogOf(own)).toEqual(before)
      }),
    )

    it(
      'is created by exactly one of three concurrent processes, and works for all',
      on(async (rig) => {
        const { url: own } = await emptyDatabase(rig, url)
        const pools = [1, 2, 3].map(() => poolOn(own, 2))
        rig.atEnd(() => Promise.all(pools.map((each) => each.end())))
        const applied = await Promise.all(pools.map((each) => migrate(each)))
        expect(applied.filter(({ length }) => length === 0)).toHaveLength(2)
        expect(applied.flat()).toEqual(RELEASED)
        const ids = await Promise.all(
          pools.map((each) => outbox({ queue: 'q' }).add(each, { body: 1 })),
        )
        expect(new Set(ids).size).toBe(3)
      }),
    )

    it(
      'is the same from migrate() and from migrationSql(), also when repeated',
      on(async (rig) => {
        const { pool: migrated } = await ownDatabase(rig, url)
        const { pool: scripted, url: own } = await emptyDatabase(rig, url)
        await psql(own, migrationSql())
        const once = await catalogOf(scripted)
        await psql(own, migrationSql())
        expect(await catalogOf(scripted)).toEqual(once)
        expect(once).toEqual(await catalogOf(migrated))
        expect(await migrate(scripted)).toEqual([])
      }),
    )

    it(
      'rejects migrate() by a role without privileges, with instructions',
      on(async (rig) => {
        const { url: own } = await emptyDatabase(rig, url)
        const role = `guest_${rig.queue.slice(4, 12)}`
        await rig.query(`create role ${role} login`)
        rig.atEnd(() => rig.query(`drop role ${role}`))
        const guest = poolOn(Object.assign(new URL(own), { username: role }).href, 2)
        rig.atEnd(() => guest.end())
        const error = await refusal(migrate(guest))
        expect(isRedriveError(error, 'TOPOLOGY_MISMATCH')).toBe(true)
        expect(error.message).toContain('migrationSql()')
      }),
    )

    it(
      'belongs to a role without superuser, which migrates, adds, handles and maintains',
      on(async (rig) => {
        const { pool: admin, url: own } = await emptyDatabase(rig, url)
        const role = `managed_${rig.queue.slice(4, 12)}`
        await rig.query(`create role ${role} login`)
        rig.atEnd(() => rig.query(`drop role ${role}`))
        rig.atEnd(() => admin.query(`drop owned by ${role} cascade`))
        const database = new URL(own).pathname.slice(1)
        await admin.query(`grant create on database ${database} to ${role}`)
        const managed = poolOn(Object.assign(new URL(own), { username: role }).href, 6)
        rig.atEnd(() => managed.end())
        expect(await migrate(managed)).toEqual(RELEASED)
        await outbox({ queue: rig.queue }).add(managed, { body: 1 })
        const { transport, hand } = await rig.start({ pool: managed, listen: true })
        expect(await transport.enact(await hand.nth(1), settle)).toMatchObject({ kind: 'done' })
        await managed.query(DROP_LAST_DAY)
        const keep = { deliveredRetention: '1d', deadLetterRetention: '1d' } as const
        expect(await maintain(managed, { queue: rig.queue, ...keep })).toMatchObject({
          partitionsCreated: 1,
          skipped: [],
        })
        await transport.close()
      }),
    )

    it(
      'rejects open() without it, with the advice to migrate',
      on(async (rig) => {
        const { pool: own } = await emptyDatabase(rig, url)
        const error = await refusal(rig.transport({ pool: own }).open())
        expect(isRedriveError(error, 'TOPOLOGY_MISMATCH')).toBe(true)
        expect(error.message).toContain('Run migrate(pool)')
      }),
    )

    it(
      'rejects open() on a read-only server, with the advice to connect to the primary',
      on(async (rig) => {
        const own = poolOn(`${url}?options=-c%20default_transaction_read_only%3Don`)
        rig.atEnd(() => own.end())
        const error = await refusal(rig.transport({ pool: own }).open())
        expect(isRedriveError(error, 'TOPOLOGY_MISMATCH')).toBe(true)
        expect(error.message).toContain('Connect to the primary')
      }),
    )

    it('lists all invalid options of postgres() together', () => {
      const small = poolOn(url, 1)
      const options = { pool: small, queue: '', order: 'any' as 'lane', lease: '10ms' } as const
      const error = (() => {
        try {
          return postgres({ ...options, deliveredRetention: 'long' as '1s' })
        } catch (caught) {
          return caught
        }
      })()
      expect(isRedriveError(error, 'POLICY_INVALID')).toBe(true)
      const { message } = error as Error
      expect(message.match(/^- (\w+)/gm)).toEqual([
        '- pool',
        '- queue',
        '- order',
        '- lease',
        '- deliveredRetention',
      ])
    })
  })

  describe.concurrent('an upgrade from the first release', () => {
    it.each([
      ['migrate()', ({ pool: own }: Database) => migrate(own)],
      ['migrationSql()', ({ url: own }: Database) => psql(own, migrationSql())],
    ])('by %s makes what a new database has', async (_, upgrade) => {
      await on(async (rig) => {
        const { pool: own, url: ownUrl } = await firstRelease(rig, url)
        const error = await refusal(rig.transport({ pool: own }).open())
        expect(isRedriveError(error, 'TOPOLOGY_MISMATCH'), 'until then it is refused').toBe(true)
        await upgrade({ pool: own, url: ownUrl })
        const { pool: fresh } = await ownDatabase(rig, url)
        expect(await catalogOf(own)).toEqual(await catalogOf(fresh))
      })()
    })

    it(
      'keeps waiting, in-flight and failed rows',
      on(async (rig) => {
        const { pool: own } = await firstRelease(rig, url)
        const orders = outbox({ queue: rig.queue })
        const ids = await orders.addMany(own, [{ body: 1 }, { body: 2 }])
        const claims = await turn(own, rig.queue, { most: 1 })
        await migrate(own)
        const failed = await orders.add(own, { body: 3 })
        const { transport, hand } = await rig.start({ pool: own })
        await hand.nth(2)
        expect(new Set([...hand.ids, ...claims.map(({ id }) => id)])).toEqual(
          new Set([...ids, failed]),
        )
        // Finishes a row like a consumer of the first release.
        await turn(own, rig.queue, { done: claims })
        for (const delivery of hand.deliveries) await transport.enact(delivery, deadLetter())
        const { rows } = await own.query('select status from redrive.outbox order by 1')
        expect(rows.map(({ status }: { status: string }) => status)).toEqual([
          'delivered',
          'failed',
          'failed',
        ])
      }),
    )

    it(
      'keeps the manually granted privileges of a role',
      on(async (rig) => {
        const { pool: own, url: ownUrl } = await firstRelease(rig, url)
        const role = `clerk_${rig.queue.slice(4, 12)}`
        await rig.query(`create role ${role} login`)
        rig.atEnd(() => rig.query(`drop role ${role}`))
        rig.atEnd(() => own.query(`drop owned by ${role}`))
        await own.query(`grant usage on schema redrive to ${role};
          grant select, insert, update, delete on all tables in schema redrive to ${role};
          grant usage on all sequences in schema redrive to ${role}`)
        await migrate(own)
        const clerk = poolOn(Object.assign(new URL(ownUrl), { username: role }).href, 4)
        rig.atEnd(() => clerk.end())
        const id = await outbox({ queue: rig.queue }).add(own, { body: 1 })
        const { transport, hand } = await rig.start({ pool: clerk })
        await transport.enact(await hand.nth(1), deadLetter())
        await own.query(`select redrive.outbox_replay($1, 1, 'me')`, [id])
        expect(await transport.enact(await hand.nth(2), settle)).toMatchObject({ kind: 'done' })
        const { rows } = await clerk.query('select outcome from redrive.replay_confirmation')
        expect(rows).toEqual([{ outcome: 'handled' }])
        await transport.close()
      }),
    )

    it(
      'fails instead of blocking all sessions behind an open transaction',
      on(async (rig) => {
        const { pool: own } = await firstRelease(rig, url)
        const idle = await own.connect()
        await idle.query('begin')
        await outbox({ queue: rig.queue }).add(idle, { body: 1 })
        const error = await refusal(migrate(own))
        expect(error.message).toContain('lock timeout')
        await idle.query('commit')
        idle.release()
        expect(await migrate(own)).toEqual(RELEASED.slice(2))
      }),
    )
  })

  describe.concurrent('a migration deletes no rows and creates the partitions of the next days', () => {
    it.each([
      ['migrate() from the first release', firstRelease, ({ pool: own }: Database) => migrate(own)],
      [
        'migrationSql() from the first release',
        firstRelease,
        ({ url: own }: Database) => psql(own, migrationSql()),
      ],
      ['migrationSql() again', ownDatabase, ({ url: own }: Database) => psql(own, migrationSql())],
    ])('%s', async (_, make, run) => {
      await on(async (rig) => {
        const database = await make(rig, url)
        const { pool: own } = database
        await own.query(OLD_ROWS)
        await own.query(DROP_LAST_DAY)
        const count = async () => (await own.query('select from redrive.outbox')).rowCount
        expect(await count()).toBe(4)
        await run(database)
        expect(await count()).toBe(4)
        const { rows } = await own.query(LAST_DAY)
        expect(rows).toEqual([{ exists: true }])
      })()
    })
  })

  describe.concurrent('the cost of a claim', () => {
    it(
      'is no index change and little log for 100 rows with 1 KB payloads',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        const payload = Buffer.alloc(1_024, 7)
        const events = Array.from({ length: 100 }, () => ({ body: payload }))
        await outbox({ queue: 'q' }).addMany(own, events)
        const client = await own.connect()
        await client.query('begin')
        const cost = await costOf(client, TURN_SQL, turnValues('q', { most: 100 }))
        const { rows } = await client.query(
          `select sum(n_tup_upd)::integer as updated, sum(n_tup_hot_upd)::integer as hot
           from pg_stat_xact_user_tables where schemaname = 'redrive'`,
        )
        await client.query('commit')
        client.release()
        expect(rows).toEqual([{ updated: 100, hot: 100 }])
        expect(cost.rows).toBe(100)
        // The payloads alone are 100 KB.
        expect(cost.walBytes).toBeLessThan(70_000)
      }),
    )

    it(
      'is the same for 20 rows with 100 KB each, for finishing them and for a heartbeat',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        const events = Array.from({ length: 20 }, () => ({ body: Buffer.alloc(102_400, 7) }))
        await outbox({ queue: 'q' }).addMany(own, events)
        const claim = await costOf(own, TURN_SQL, turnValues('q', { most: 20 }))
        const { rows: taken } = await own.query<{ id: string; token: string }>(
          'select id, lease_token::text as token from redrive.outbox',
        )
        const keep = await costOf(own, 'select redrive.outbox_keep($1::uuid[], $2::bigint[], $3)', [
          taken.map(({ id }) => id),
          taken.map(({ token }) => token),
          60_000,
        ])
        const finish = await costOf(own, TURN_SQL, turnValues('q', { done: taken }))
        for (const { walBytes } of [claim, keep, finish]) expect(walBytes).toBeLessThan(100_000)
        const { rows } = await own.query('select from redrive.outbox where status <> $1', [
          'delivered',
        ])
        expect(rows).toHaveLength(0)
      }),
    )

    it(
      'excludes index changes: no index contains a column that a claim changes',
      on(async (rig) => {
        const columns = (await rig.query<{ name: string }>(INDEXED)).map(({ name }) => name)
        // Only predicates contain this column, so the query covers them.
        expect(columns).toEqual(expect.arrayContaining(['id', 'due_at', 'deleted_at']))
        for (const name of ['status', 'lease_until', 'lease_token', 'lapses']) {
          expect(columns).not.toContain(name)
        }
      }),
    )

    it(
      'is low because partitions keep half of each page free and payloads out of line',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        const { rows } = await own.query<{ options: string[]; storage: string }>(
          `select c.reloptions as options, a.attstorage::text as storage from pg_inherits i
           join pg_class c on c.oid = i.inhrelid join pg_attribute a on a.attrelid = c.oid and a.attname = 'payload'
           where i.inhparent = 'redrive.outbox'::regclass`,
        )
        expect(rows).toHaveLength(9)
        for (const { options, storage } of rows) {
          expect(options).toEqual(
            expect.arrayContaining(['fillfactor=50', 'autovacuum_vacuum_scale_factor=0']),
          )
          expect(storage).toBe('e')
        }
      }),
    )
  })

  describe.concurrent('a wrong manual change is rejected', () => {
    const mistakes: readonly (readonly [string, string])[] = [
      ['a row that waits without a due time', 'set due_at = null'],
      ['a row taken up again without a due time', `set status = 'in_flight', due_at = null`],
      ['a delivered row that is still due', `set status = 'delivered'`],
      ['a dead letter without a time', `set status = 'failed', due_at = null`],
      ['a time of giving up on a row that is due', `set failed_at = now()`],
      ['a status that there is not', `set status = 'done', due_at = null`],
    ]
    it.each(mistakes)('%s', async (_, change) => {
      await on(async (rig) => {
        const id = await rig.add()
        const error = await refusal(
          rig.query(`update redrive.outbox ${change} where id = $1`, [id]),
        )
        expect(error).toMatchObject({ code: '23514' })
        const { transport, hand } = await rig.start()
        expect(await transport.enact(await hand.nth(1), settle)).toMatchObject({ kind: 'done' })
        const again = `update redrive.outbox set status = 'pending' where id = $1`
        expect(await refusal(rig.query(again, [id]))).toMatchObject({ code: '23514' })
      })()
    })
  })

  describe.concurrent('the client of the application', () => {
    it.each(['escape', 'hex'])(
      'delivers and drains every byte with bytea_output = %s',
      async (format) => {
        await on(async (rig) => {
          const own = poolOn(`${url}?options=-c%20bytea_output%3D${format}`)
          rig.atEnd(() => own.end())
          const { rows } = await own.query('show bytea_output')
          expect(rows).toEqual([{ bytea_output: format }])
          const { transport, hand } = await rig.start({ pool: own })
          for (const [index, body] of [CYRILLIC, ESCAPED, BYTES].entries()) {
            await rig.add({ body })
            expect(Buffer.from((await hand.nth(index + 1)).bytes)).toEqual(body)
          }
          const delivery = await hand.nth(3)
          await transport.enact(delivery, deadLetter())
          const source = postgresSource({ pool: own, queue: rig.queue })
          rig.atEnd(() => source.close())
          const { deadLetters } = await source.drain({ limit: 1 })
          expect(Buffer.from(deadLetters[0]?.delivery.bytes ?? [])).toEqual(BYTES)
        })()
      },
    )

    it(
      'may use any type parsers for timestamps, bigints and JSON',
      on(async (rig) => {
        const own = rig.ownPool(url)
        // Like an application that reads every value as text.
        Object.assign(own.options, { types: { getTypeParser: () => (text: string) => text } })
        const { transport, hand } = await rig.start({ pool: own })
        await rig.add({ headers: { tenant: 'x' } })
        const delivery = await hand.nth(1)
        expect(delivery).toMatchObject({ headers: { tenant: 'x' }, cycle: { number: 1 } })
        expect(await transport.enact(delivery, settle)).toMatchObject({ kind: 'done' })
        expect(await turn(pool, rig.queue, { most: 1 })).toEqual([])
      }),
    )
  })
}
