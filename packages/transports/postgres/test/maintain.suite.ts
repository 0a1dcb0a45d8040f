import { type Duration, isRedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { maintain } from '../src/index.ts'
import { type Database, floorAt, idAt, ownDatabase, psql } from './database.ts'
import { onRig, type Rig, refusal, settle, until, within } from './rig.ts'
import { poolOn } from './services.ts'

const DAY_MS = 86_400_000
const KEEP = { deliveredRetention: '2d', deadLetterRetention: '14d' } as const

const startOfDay = (daysAgo: number) => Math.floor(Date.now() / DAY_MS) * DAY_MS - daysAgo * DAY_MS

const nameOf = (dayMs: number) =>
  `outbox_${new Date(dayMs).toISOString().slice(0, 10).replaceAll('-', '')}`

/**
 * Creates the partition of that day, without autovacuum. Autovacuum would hold a lock at an unknown time,
 * for longer than `maintain` waits for it.
 */
async function makePartition(pool: Pool, daysAgo: number): Promise<string> {
  const day = startOfDay(daysAgo)
  await pool.query(
    `create table redrive.${nameOf(day)} partition of redrive.outbox
     for values from ('${floorAt(day)}') to ('${floorAt(day + DAY_MS)}')
     with (autovacuum_enabled = off)`,
  )
  return nameOf(day)
}

/** Sessions that wait for a lock on a table of this database. */
const WAITING = `
select from pg_locks l join pg_database d on d.oid = l.database
where not l.granted and l.locktype = 'relation' and d.datname = current_database()`

/** The default lock timeout. */
const LOCK_TIMEOUT = `select proconfig from pg_proc where oid = 'redrive.outbox_detach_day(regclass, interval, interval)'::regprocedure`

/** A longer lock timeout, so that the test can act during the wait. */
const waitLonger = (pool: Pool, timeout: string) =>
  pool.query(`
    alter function redrive.outbox_maintenance_step(interval, interval, text[]) set lock_timeout = '${timeout}';
    alter function redrive.outbox_detach_day(regclass, interval, interval) set lock_timeout = '${timeout}';
    alter function redrive.outbox_make_partition(date) set lock_timeout = '${timeout}'`)

type Kind = 'pending' | 'in_flight' | 'delivered' | 'failed'

const COLUMNS: Readonly<Record<Kind, string>> = {
  pending: `due_at = now()`,
  in_flight: `status = 'in_flight', due_at = now(), lease_until = now() - interval '1 second', lease_token = 1`,
  delivered: `status = 'delivered', due_at = null, delivered_at = now() - $2 * interval '1 day'`,
  failed: `status = 'failed', due_at = null, failed_at = now() - $2 * interval '1 day', reason = 'terminal'`,
}

/** A row with its age in days, its outcome and the age of the outcome. */
async function oldRow(
  { pool }: Database,
  queue: string,
  kind: Kind,
  { addedDaysAgo, daysAgo }: { addedDaysAgo: number; daysAgo: number },
): Promise<string> {
  const id = idAt(startOfDay(addedDaysAgo) + DAY_MS / 2)
  await pool.query('insert into redrive.outbox (id, queue, payload) values ($1, $2, $3)', [
    id,
    queue,
    Buffer.from(kind),
  ])
  const text = `update redrive.outbox set ${COLUMNS[kind]} where id = $1`
  await pool.query(text, COLUMNS[kind].includes('$2') ? [id, daysAgo] : [id])
  return id
}

const partitionsOf = async (pool: Pool): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'redrive.outbox'::regclass order by 1`,
  )
  return rows.map(({ name }) => name)
}

const placesOf = async (pool: Pool): Promise<Readonly<Record<string, string>>> => {
  const { rows } = await pool.query<{ id: string; place: string }>(
    'select o.id, c.relname::text as place from redrive.outbox o join pg_class c on c.oid = o.tableoid',
  )
  return Object.fromEntries(rows.map(({ id, place }) => [id, place]))
}

export function maintaining(url: string, pool: Pool): void {
  const on = (test: (rig: Rig, database: Database) => Promise<void>) =>
    onRig(pool, async (rig) => test(rig, await ownDatabase(rig, url)))

  describe.concurrent('maintain', () => {
    it(
      'creates the partitions of the next week once, and stores events in the partition of their day',
      on(async (rig, { pool: own }) => {
        const week = [0, -1, -2, -3, -4, -5, -6, -7].map((ago) => nameOf(startOfDay(ago)))
        expect(await partitionsOf(own)).toEqual([...week, 'outbox_default'])
        const last = week.at(-1) ?? ''
        await own.query(`drop table redrive.${last}`)
        expect(await maintain(own, KEEP)).toEqual({
          partitionsCreated: 1,
          partitionsDropped: 0,
          rowsDeleted: 0,
          skipped: [],
        })
        expect(await partitionsOf(own)).toEqual([...week, 'outbox_default'])
        expect(await maintain(own, KEEP)).toEqual({
          partitionsCreated: 0,
          partitionsDropped: 0,
          rowsDeleted: 0,
          skipped: [],
        })
        const id = await rig.outbox.add(own, { body: 1 })
        expect(await placesOf(own)).toEqual({ [id]: week[0] })
      }),
    )

    it(
      'drops old partitions; needed rows survive, are delivered and can be replayed',
      on(async (rig, database) => {
        const { pool: own } = database
        const old = await makePartition(own, 10)
        const recent = await makePartition(own, 2)
        const add = (kind: Kind, daysAgo: number) =>
          oldRow(database, rig.queue, kind, { addedDaysAgo: 10, daysAgo })
        const waiting = await add('pending', 0)
        const taken = await add('in_flight', 0)
        const lately = await add('delivered', 1)
        const dead = await add('failed', 9)
        const gone = [await add('delivered', 9), await add('delivered', 3), await add('failed', 15)]
        const kept = await oldRow(database, rig.queue, 'delivered', { addedDaysAgo: 2, daysAgo: 2 })
        expect(await maintain(own, KEEP)).toMatchObject({ partitionsDropped: 1 })
        expect(await partitionsOf(own)).not.toContain(old)
        const places = await placesOf(own)
        for (const id of [waiting, taken, lately, dead]) {
          expect(places[id]).toBe('outbox_default')
        }
        for (const id of gone) expect(places[id]).toBeUndefined()
        expect(places[kept]).toBe(recent)
        const { transport, hand } = await rig.start({ pool: own })
        await hand.nth(2)
        expect([...hand.ids].sort()).toEqual([waiting, taken].sort())
        for (const delivery of hand.deliveries) {
          expect(await transport.enact(delivery, settle)).toMatchObject({ kind: 'done' })
        }
        await own.query('select redrive.outbox_replay($1, 1, $2)', [dead, 'me'])
        expect(await hand.nth(3)).toMatchObject({ id: dead, cycle: { number: 2 } })
        expect(Buffer.from((await hand.nth(3)).bytes).toString()).toBe('failed')
      }),
    )

    it(
      'delivers rows in the default partition, and deletes old ones',
      on(async (rig, database) => {
        const { pool: own } = database
        const add = (kind: Kind, daysAgo: number) =>
          oldRow(database, rig.queue, kind, { addedDaysAgo: 40, daysAgo })
        const waiting = await add('pending', 0)
        const kept = [await add('delivered', 1), await add('failed', 13)]
        await add('delivered', 3)
        await add('failed', 15)
        expect(await maintain(own, KEEP)).toEqual({
          partitionsCreated: 0,
          partitionsDropped: 0,
          rowsDeleted: 2,
          skipped: [],
        })
        expect(Object.keys(await placesOf(own)).sort()).toEqual([waiting, ...kept].sort())
        const { transport, hand } = await rig.start({ pool: own })
        const delivery = await hand.nth(1)
        expect(delivery.id).toBe(waiting)
        expect(await transport.enact(delivery, settle)).toMatchObject({ kind: 'done' })
      }),
    )

    it(
      'skips a day with rows in the default partition, and creates the other days',
      on(async (rig, database) => {
        const { pool: own } = database
        const [soon, later] = [nameOf(startOfDay(-6)), nameOf(startOfDay(-7))]
        await own.query(`drop table redrive.${soon}, redrive.${later}`)
        const id = await oldRow(database, rig.queue, 'pending', { addedDaysAgo: -6, daysAgo: 0 })
        expect(await maintain(own, KEEP)).toEqual({
          partitionsCreated: 1,
          partitionsDropped: 0,
          rowsDeleted: 0,
          skipped: [soon],
        })
        expect(await partitionsOf(own)).toContain(later)
        expect(await placesOf(own)).toEqual({ [id]: 'outbox_default' })
      }),
    )

    it(
      'does not drop a partition with more needed rows than it can move',
      on(async (rig, { pool: own }) => {
        const name = await makePartition(own, 10)
        const at = startOfDay(10).toString(16).padStart(12, '0')
        await own.query(
          `insert into redrive.outbox (id, queue, payload)
           select ('${at.slice(0, 8)}-${at.slice(8)}-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, ''
           from generate_series(1, 10001) n`,
          [rig.queue],
        )
        expect(await maintain(own, KEEP)).toMatchObject({ partitionsDropped: 0 })
        const { rows } = await own.query(`select count(*)::integer as count from redrive.${name}`)
        expect(rows).toEqual([{ count: 10_001 }])
        await own.query(
          `update redrive.outbox set status = 'delivered', due_at = null, delivered_at = now() - interval '3 days'
           where id = (select max(id::text)::uuid from redrive.${name})`,
        )
        expect(await maintain(own, KEEP)).toMatchObject({ partitionsDropped: 1 })
        expect(Object.keys(await placesOf(own))).toHaveLength(10_000)
      }),
    )

    it(
      'skips a locked partition quickly, so that other statements do not wait long',
      on(async (rig, { pool: own }) => {
        const { rows: shipped } = await own.query(LOCK_TIMEOUT)
        expect(shipped).toMatchObject([
          { proconfig: expect.arrayContaining(['lock_timeout=50ms']) as unknown },
        ])
        await waitLonger(own, '2s')
        const name = await makePartition(own, 10)
        const reader = await own.connect()
        await reader.query('begin')
        await reader.query(`select from redrive.${name}`)
        const maintaining = maintain(own, KEEP)
        await until('it waits', async () => {
          const { rows } = await own.query(WAITING)
          return rows.length > 0
        })
        // The reader stays until both have ended, so only the lock timeout ends the wait.
        await within('a producer behind it', rig.outbox.add(own, { body: 1 }))
        expect(await within('it gives up', maintaining)).toMatchObject({ partitionsDropped: 0 })
        await reader.query('commit')
        reader.release()
        expect(await partitionsOf(own)).toContain(name)
        expect(await maintain(own, KEEP)).toMatchObject({ partitionsDropped: 1 })
      }),
    )

    it(
      'creates and drops partitions while another session locks the table and then its last partition',
      on(async (_, { pool: own }) => {
        await waitLonger(own, '10s')
        const old = await makePartition(own, 10)
        const last = nameOf(startOfDay(-7))
        await own.query(`drop table redrive.${last}`)
        // Like a turn: first the table, then one partition after the other.
        const other = await own.connect()
        await other.query('begin')
        await other.query('lock table only redrive.outbox in row exclusive mode')
        const maintaining = maintain(own, KEEP)
        await until('it waits', async () => {
          const { rows } = await own.query(WAITING)
          return rows.length > 0
        })
        await other.query('select count(*) from redrive.outbox_default')
        await other.query('commit')
        other.release()
        expect(await maintaining).toMatchObject({ partitionsCreated: 1, partitionsDropped: 1 })
        const names = await partitionsOf(own)
        expect([names.includes(old), names.includes(last)]).toEqual([false, true])
      }),
    )

    it(
      'runs once for two concurrent calls; the other does nothing and does not wait',
      on(async (_, { pool: own }) => {
        await makePartition(own, 10)
        const first = await own.connect()
        await first.query('begin')
        const { rows } = await first.query(
          `select done from redrive.outbox_maintenance_step('2 days', '14 days', '{}')`,
        )
        expect(rows).toEqual([{ done: 'detached' }])
        const second = within('the second', maintain(own, KEEP))
        expect(await second).toEqual({
          partitionsCreated: 0,
          partitionsDropped: 0,
          rowsDeleted: 0,
          skipped: [],
        })
        await first.query('commit')
        first.release()
        expect(await maintain(own, KEEP)).toMatchObject({ partitionsDropped: 1 })
      }),
    )

    it(
      'loses no event that is added or handled during maintenance',
      on(async (rig, { pool: own }) => {
        const { transport, hand } = await rig.start({ pool: own })
        const ids: string[] = []
        for (let ago = 10; ago < 20; ago++) {
          await makePartition(own, ago)
          const [added] = await Promise.all([
            rig.outbox.addMany(
              own,
              Array.from({ length: 20 }, () => ({ body: 1 })),
            ),
            maintain(own, KEEP),
          ])
          ids.push(...added)
          for (const one of hand.deliveries) void transport.enact(one, settle)
        }
        await until('all', () => {
          for (const one of hand.deliveries) void transport.enact(one, settle)
          return hand.deliveries.length >= ids.length
        })
        expect([...hand.ids].sort()).toEqual(ids.sort())
      }),
    )

    it(
      'runs when a consumer starts, and reports a missing privilege',
      on(async (rig, { pool: own, url: ownUrl }) => {
        const last = nameOf(startOfDay(-7))
        await own.query(`drop table redrive.${last}`)
        await makePartition(own, 10)
        const transport = rig.transport({ pool: own, maintain: true })
        await transport.open()
        await until('the week', async () => {
          const names = await partitionsOf(own)
          return names.includes(last) && !names.includes(nameOf(startOfDay(10)))
        })
        await transport.close()
        const role = `worker_${rig.queue.slice(4, 12)}`
        await own.query(`create role ${role} login; grant usage on schema redrive to ${role};
          grant select, insert, update on all tables in schema redrive to ${role};
          grant usage on all sequences in schema redrive to ${role}`)
        rig.atEnd(() => rig.query(`drop role ${role}`))
        rig.atEnd(() => own.query(`drop owned by ${role}`))
        await own.query(`drop table redrive.${last}`)
        const worker = poolOn(Object.assign(new URL(ownUrl), { username: role }).href, 4)
        rig.atEnd(() => worker.end())
        const events = rig.events()
        const { hand } = await rig.start({ pool: worker, maintain: true })
        const isReported = () =>
          events.some(
            (event) => event.type === 'user_code_failed' && event.where === 'postgres.maintain',
          )
        await until('it is reported', isReported)
        const id = await rig.outbox.add(own, { body: 1 })
        expect((await hand.nth(1)).id).toBe(id)
      }),
    )

    it(
      'keeps dead letters and delivered events of a queue when a consumer of another queue starts',
      on(async (rig, database) => {
        const { pool: own } = database
        const start = async (
          queue: string,
          deliveredRetention: Duration,
          deadLetterRetentionMs: number,
        ) => {
          const transport = rig.transport({ pool: own, queue, deliveredRetention, maintain: true })
          await transport.open({ deadLetterRetentionMs: deadLetterRetentionMs })
        }
        await makePartition(own, 20)
        const days = { addedDaysAgo: 20, daysAgo: 20 }
        const ledger = [
          await oldRow(database, 'ledger', 'failed', days),
          await oldRow(database, 'ledger', 'delivered', days),
        ]
        const empty = await makePartition(own, 70)
        await start('ledger', '60d', 90 * DAY_MS)
        await until('the consumer of "ledger" drops the empty day', async () => {
          return !(await partitionsOf(own)).includes(empty)
        })
        const expired = { addedDaysAgo: 40, daysAgo: 20 }
        const email = await oldRow(database, 'emails', 'failed', expired)
        await start('emails', '2d', 14 * DAY_MS)
        await until('the consumer of "emails" deletes its expired row', async () => {
          return (await placesOf(own))[email] === undefined
        })
        expect(Object.keys(await placesOf(own)).sort()).toEqual(ledger.sort())
      }),
    )

    it(
      'drops a day after the longest retention of delivered events, and keeps what each queue needs',
      on(async (_, database) => {
        const { pool: own } = database
        const day = await makePartition(own, 10)
        const add = (queue: string, kind: Kind, daysAgo: number) =>
          oldRow(database, queue, kind, { addedDaysAgo: 10, daysAgo })
        await add('ledger', 'delivered', 9)
        const ledger = await add('ledger', 'failed', 9)
        const emails = [await add('emails', 'delivered', 1), await add('emails', 'failed', 1)]
        await add('emails', 'delivered', 9)
        await add('emails', 'failed', 9)
        const ofLedger = {
          queue: 'ledger',
          deliveredRetention: '60d',
          deadLetterRetention: '90d',
        } as const
        const ofEmails = {
          queue: 'emails',
          deliveredRetention: '2d',
          deadLetterRetention: '5d',
        } as const
        await maintain(own, ofLedger)
        expect(await maintain(own, ofEmails)).toMatchObject({ partitionsDropped: 0 })
        expect(await partitionsOf(own)).toContain(day)
        const kept = await maintain(own, { ...ofLedger, deliveredRetention: '8d' })
        expect(kept).toMatchObject({ partitionsDropped: 1 })
        const places = await placesOf(own)
        expect(Object.keys(places).sort()).toEqual([ledger, ...emails].sort())
      }),
    )

    it(
      'keeps rows of a queue without a stored retention, until maintain() is called with a default',
      on(async (_, database) => {
        const { pool: own } = database
        const day = await makePartition(own, 30)
        const add = (queue: string, kind: Kind, addedDaysAgo: number) =>
          oldRow(database, queue, kind, { addedDaysAgo, daysAgo: 20 })
        const unknown = [
          await add('unknown', 'delivered', 30),
          await add('unknown', 'failed', 30),
          await add('unknown', 'failed', 40),
        ]
        await add('emails', 'delivered', 30)
        const ledger = await add('ledger', 'failed', 30)
        await maintain(own, {
          queue: 'ledger',
          deliveredRetention: '2d',
          deadLetterRetention: '90d',
        })
        await maintain(own, { queue: 'emails', ...KEEP })
        expect(await partitionsOf(own)).not.toContain(day)
        const places = await placesOf(own)
        expect(Object.keys(places).sort()).toEqual([ledger, ...unknown].sort())
        expect(await maintain(own, KEEP)).toMatchObject({ rowsDeleted: 3 })
        expect(Object.keys(await placesOf(own))).toEqual([ledger])
      }),
    )

    it(
      'stores the retention of a queue while another maintenance runs',
      on(async (_, { pool: own }) => {
        const first = await own.connect()
        await first.query('begin')
        await first.query(`select redrive.outbox_retain('emails', '2 days', '14 days')`)
        await first.query(`select redrive.outbox_maintenance_step(null, null, '{}')`)
        const ofLedger = {
          queue: 'ledger',
          deliveredRetention: '60d',
          deadLetterRetention: '90d',
        } as const
        await within('the second', maintain(own, ofLedger))
        await first.query('commit')
        first.release()
        const { rows } = await own.query(
          'select queue, (extract(epoch from keep_failed) / 86400)::integer as days from redrive.outbox_retention order by 1',
        )
        expect(rows).toEqual([
          { queue: 'emails', days: 14 },
          { queue: 'ledger', days: 90 },
        ])
      }),
    )

    it(
      'moves all dead letters of an old day, in steps, and deletes them when they expire',
      on(async (_, { pool: own }) => {
        const day = await makePartition(own, 10)
        const at = startOfDay(10).toString(16).padStart(12, '0')
        await own.query(
          `insert into redrive.outbox (id, queue, status, due_at, failed_at, deleted_at, payload)
           select ('${at.slice(0, 8)}-${at.slice(8)}-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'ledger', 'failed', null,
             now() - interval '9 days', case when n % 2 = 0 then now() end, ''
           from generate_series(1, 12001) n`,
        )
        const longer = { deliveredRetention: '2d', deadLetterRetention: '14d' } as const
        expect(await maintain(own, { queue: 'ledger', ...longer })).toMatchObject({
          partitionsDropped: 1,
          skipped: [],
        })
        expect(await partitionsOf(own)).not.toContain(day)
        expect(Object.keys(await placesOf(own))).toHaveLength(12_001)
        const shorter = { deliveredRetention: '2d', deadLetterRetention: '5d' } as const
        expect(await maintain(own, { queue: 'ledger', ...shorter })).toMatchObject({
          rowsDeleted: 12_001,
        })
      }),
    )

    it(
      'finishes a day that an earlier run detached, and keeps a day that a user detached',
      on(async (rig, database) => {
        const { pool: own } = database
        const [ours, theirs] = [await makePartition(own, 10), await makePartition(own, 12)]
        const dead = await oldRow(database, rig.queue, 'failed', { addedDaysAgo: 10, daysAgo: 9 })
        await own.query(`alter table redrive.outbox detach partition redrive.${ours};
          alter table redrive.${ours} rename to ${ours.replace('_', '_dropping_')};
          alter table redrive.outbox detach partition redrive.${theirs}`)
        expect(await placesOf(own)).toEqual({})
        expect(await maintain(own, KEEP)).toMatchObject({ partitionsDropped: 1 })
        expect(await placesOf(own)).toEqual({ [dead]: 'outbox_default' })
        const { rows } = await own.query(`select to_regclass('redrive.${theirs}')::text as name`)
        expect(rows).toEqual([{ name: `redrive.${theirs}` }])
      }),
    )

    it(
      'runs from psql with call',
      on(async (_, { pool: own, url: ownUrl }) => {
        const day = await makePartition(own, 10)
        await psql(ownUrl, `call redrive.outbox_maintain('2 days', '14 days', 'billing');`)
        expect(await partitionsOf(own)).not.toContain(day)
        const { rows } = await own.query('select queue from redrive.outbox_retention')
        expect(rows).toEqual([{ queue: 'billing' }])
      }),
    )

    it(
      'reports days that are missing, although the role may run it',
      on(async (rig, { pool: own }) => {
        for (const ahead of [-1, -2, -3]) {
          await own.query(`drop table redrive.${nameOf(startOfDay(ahead))}`)
        }
        // A session that keeps its lock, as a forgotten transaction does.
        const forgotten = await own.connect()
        await forgotten.query('begin; lock table redrive.outbox in share update exclusive mode')
        const events = rig.events()
        await rig.start({ pool: own, maintain: true })
        const reports = () =>
          events.flatMap((event) => (event.type === 'user_code_failed' ? [event.error] : []))
        await until('it is reported', () => reports().length > 0)
        expect(String(reports()[0])).toContain('has only 0 partitions for days after today')
        await forgotten.query('rollback')
        forgotten.release()
      }),
    )

    it(
      'rejects a retention that is not a duration',
      on(async (_, { pool: own }) => {
        const error = await refusal(maintain(own, { ...KEEP, deliveredRetention: 'long' as '1s' }))
        expect(isRedriveError(error, 'POLICY_INVALID')).toBe(true)
        expect(error.message).toContain('deliveredRetention')
      }),
    )
  })
}
