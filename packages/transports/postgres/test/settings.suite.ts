import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { inTransaction, maintain, outbox, postgresInbox, postgresSource } from '../src/index.ts'
import { runStatement } from '../src/statement.ts'
import { ownDatabase } from './database.ts'
import { deadLetter, type Hooks, onRig, type Rig, retryIn, settle, until } from './rig.ts'
import { poolOn } from './services.ts'

/** Every byte, after text that looks like an escaped byte. */
const BYTES = Buffer.concat([
  Buffer.from('\\x41\\101\\\\'),
  Buffer.from(Uint8Array.from({ length: 256 }, (_, value) => value)),
])

/** One session setting each. The proof `hostile-postgres` runs every suite with all of them. */
const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ['search_path', 'hostile'],
  ['bytea_output', 'escape'],
  ['datestyle', 'German'],
  ['datestyle', 'SQL, DMY'],
  ['intervalstyle', 'sql_standard'],
  ['timezone', 'Australia/Eucla'],
  ['standard_conforming_strings', 'off'],
  ['array_nulls', 'off'],
  ['extra_float_digits', '-15'],
  ['statement_timeout', '5s'],
  ['default_transaction_isolation', 'repeatable read'],
  ['default_transaction_isolation', 'serializable'],
]

const poolWith = (rig: Rig, url: string, name: string, value: string): Pool => {
  const options = encodeURIComponent(`-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  const pool = poolOn(`${url}?options=${options}`)
  rig.atEnd(() => pool.end())
  return pool
}

/** Adds, retries, drains, replays and settles an event, and returns what the consumer and the control plane saw. */
async function lifeOf(rig: Rig, pool: Pool) {
  const { transport, hand } = await rig.start({ pool, lease: '5s' })
  const events = outbox({ queue: rig.queue })
  const headers = { path: 'C:\\new', quote: `'` }
  await inTransaction(pool, (tx) => events.add(tx, { body: BYTES, key: 'k\\1', headers }))
  await transport.enact(await hand.nth(1), retryIn(1))
  const failing = await hand.nth(2)
  await transport.enact(failing, deadLetter())
  const source = postgresSource({ pool, queue: rig.queue })
  rig.atEnd(() => source.close())
  const batch = await source.drain({ limit: 10 })
  await batch.release()
  for (const one of batch.deadLetters) await source.publish({ deadLetter: one, replayId: 'r-1' })
  const replayed = await hand.nth(3)
  await transport.enact(replayed, settle)
  const confirmed = await source.confirmations({ limit: 10 })
  await confirmed.release()
  await transport.close()
  return { failing, replayed, drained: batch.deadLetters, confirmed, headers }
}

export function settings(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a setting of the session does not change what is stored, read and delivered', () => {
    it.each(SETTINGS)('%s = %s', async (name, value) => {
      await on(async (rig) => {
        const own = poolWith(rig, url, name, value)
        const { rows } = await own.query<{ set: string }>('select current_setting($1) as set', [
          name,
        ])
        expect(rows[0]?.set.toLowerCase()).toContain(value.toLowerCase())
        const { failing, replayed, drained, confirmed, headers } = await lifeOf(rig, own)
        for (const one of [failing, replayed, drained[0]?.delivery]) {
          expect(one).toMatchObject({ key: 'k\\1', headers })
          expect(Buffer.from(one?.bytes ?? [])).toEqual(BYTES)
        }
        expect(failing.cycle).toMatchObject({ attempts: 1, firstFailedAt: 1_700_000_000_000 })
        expect(replayed).toMatchObject({ replayId: 'r-1', cycle: { number: 2, attempts: 0 } })
        expect(confirmed.confirmations).toMatchObject([{ replayId: 'r-1', outcome: 'handled' }])
        expect(Math.abs((confirmed.confirmations[0]?.at ?? 0) - Date.now())).toBeLessThan(600_000)
      })()
    })

    it.each(['repeatable read', 'serializable'])(
      'nor does the second of two concurrent deliveries fail at isolation level %s',
      async (level) => {
        await on(async (rig) => {
          const own = poolWith(rig, url, 'default_transaction_isolation', level)
          const inbox = postgresInbox({ pool: own })
          const entry = { consumer: rig.queue, key: 'k', fingerprint: 'f' }
          let runs = 0
          const { promise: isWaiting, resolve: goOn } = Promise.withResolvers<void>()
          const first = inbox.handle(entry, async () => {
            runs += 1
            await isWaiting
          })
          await until('the first runs', () => runs === 1)
          const second = inbox.handle(entry, async () => void (runs += 1))
          await until('the second waits', async () => {
            const rows = await rig.query(
              `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%event_handled%' and datname = current_database()`,
            )
            return rows.length > 0
          })
          goOn()
          expect(await Promise.all([first, second])).toEqual(['handled', 'already_handled'])
          expect(runs).toBe(1)
        })()
      },
    )

    it.each(['repeatable read', 'serializable'])(
      'nor does the default isolation level %s apply to claims',
      async (level) => {
        await on(async (rig) => {
          const own = poolWith(rig, url, 'default_transaction_isolation', level)
          const statement = `select current_setting('transaction_isolation')`
          expect(await runStatement({ pool: own, schema: 'redrive' }, statement, [])).toEqual([
            ['read committed'],
          ])
          expect((await own.query(statement)).rows).toEqual([{ current_setting: level }])
        })()
      },
    )

    it(
      'nor do functions of a schema that comes before pg_catalog',
      on(async (rig) => {
        const { pool: clean, url: ownUrl } = await ownDatabase(rig, url)
        await clean.query(REPLACED)
        const own = poolWith(rig, ownUrl, 'search_path', 'replaced,pg_catalog')
        const { rows } = await own.query(`select now() < '2001-01-01' as "isReplaced"`)
        expect(rows).toEqual([{ isReplaced: true }])
        const { replayed } = await lifeOf(rig, own)
        expect(Buffer.from(replayed.bytes)).toEqual(BYTES)
        await maintain(own, { deliveredRetention: '2d', deadLetterRetention: '14d' })
        const seen: unknown[] = []
        await rig.consume((message) => void seen.push(message.body), {
          transport: rig.transport({ pool: own }),
          inbox: postgresInbox({ pool: own }),
          concurrency: 5,
        })
        await outbox({ queue: rig.queue }).add(own, { body: { n: 1 } })
        await until('it is handled', () => seen.length === 1)
        const { rows: times } = await clean.query(
          `select every(created_at > '2020-01-01') as "areReal" from redrive.outbox`,
        )
        expect(times).toEqual([{ areReal: true }])
      }),
    )
  })

  describe.concurrent('the clock of a process', () => {
    const TWO_HOURS_MS = 7_200_000
    /** Lets the clock of the database appear to be two hours ahead. */
    const hooks: Hooks = {
      after({ text }, rows) {
        const [row] = rows as unknown[][]
        if (text.startsWith('select extract') && row !== undefined) {
          row[0] = Number(row[0]) + TWO_HOURS_MS
        }
      },
    }

    it(
      'does not set the stored times of failures, and decisions see its own times again',
      on(async (rig) => {
        const id = await rig.add()
        const { transport, hand } = await rig.start({ hooks })
        await transport.enact(await hand.nth(1), retryIn(1))
        const again = await hand.nth(2)
        const { first_failed_at: firstFailedAt, cycle } = await rig.row(id)
        const [record] = (cycle as { history: { at: number }[] }).history
        const [seen] = again.cycle.history
        const aheadMs = (firstFailedAt?.getTime() ?? 0) - 1_700_000_000_000
        expect(Math.abs(aheadMs - TWO_HOURS_MS)).toBeLessThan(60_000)
        expect([record?.at, seen?.at]).toEqual([1_700_000_000_000 + aheadMs, 1_700_000_000_000])
        expect(again.cycle.firstFailedAt).toBe(1_700_000_000_000)
      }),
    )
  })
}

/** Functions that this package uses, with wrong results. */
const REPLACED = `
create schema replaced;
create function replaced.now() returns timestamptz language sql as $$select '2000-01-01'::timestamptz$$;
create function replaced.clock_timestamp() returns timestamptz language sql as $$select '2000-01-01'::timestamptz$$;
create function replaced.md5(text) returns text language sql as $$select repeat('0', 32)$$;
create function replaced.encode(bytea, text) returns text language sql as $$select '00'$$;
create function replaced.decode(text, text) returns bytea language sql as $$select ''::bytea$$;
create function replaced.nextval(regclass) returns bigint language sql as $$select 1::bigint$$;
create function replaced.to_timestamp(double precision) returns timestamptz language sql as $$select '2000-01-01'::timestamptz$$;
create function replaced.jsonb_array_length(jsonb) returns integer language sql as $$select 7$$;
create function replaced.count(integer) returns bigint language sql as $$select 7::bigint$$;`
