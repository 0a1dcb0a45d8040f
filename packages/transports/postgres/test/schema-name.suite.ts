import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import {
  handledKeys,
  maintain,
  migrate,
  migrationSql,
  missingMigrations,
  outbox,
  postgresInbox,
  postgresSink,
  postgresSource,
} from '../src/index.ts'
import { emptyDatabase, ownDatabase, psql } from './database.ts'
import { deadLetter, type Hand, onRig, type Rig, refusal, settle, until } from './rig.ts'
import { CATALOG, RELEASED } from './schema.suite.ts'

/** A reserved word: it only works with quotes. */
const SCHEMA = 'order'
const KEEP = { deliveredRetention: '1d', deadLetterRetention: '1d' } as const

/** Returns every object of the schema. With `isRenamed`, its name is replaced by that of the default schema. */
async function catalogOf(pool: Pool, isRenamed: boolean): Promise<readonly string[]> {
  const text = isRenamed ? CATALOG.replaceAll('redrive', `"${SCHEMA}"`) : CATALOG
  const { rows } = await pool.query<{ line: string }>(text)
  return rows.map(({ line }) => line.replaceAll(`"${SCHEMA}"`, 'redrive')).toSorted()
}

const countIn = async (pool: Pool, table: string): Promise<number> =>
  (await pool.query(`select from ${table}`)).rowCount ?? 0

/** A database with an outbox in the named schema only, so that a statement for the default schema fails. */
async function named(rig: Rig, url: string): Promise<Pool> {
  const { pool } = await emptyDatabase(rig, url)
  expect(await migrate(pool, { schema: SCHEMA })).toEqual(RELEASED)
  return pool
}

export function schemaNames(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a schema with another name', () => {
    it(
      'has the same objects, from migrate() and from migrationSql()',
      on(async (rig) => {
        const { pool: usual } = await ownDatabase(rig, url)
        const expected = await catalogOf(usual, false)
        const own = await named(rig, url)
        expect(await catalogOf(own, true)).toEqual(expected)
        expect(await missingMigrations(own, { schema: SCHEMA })).toEqual([])
        expect(await missingMigrations(own)).toEqual(RELEASED)
        const scripted = await emptyDatabase(rig, url)
        await psql(scripted.url, migrationSql({ schema: SCHEMA }))
        expect(await catalogOf(scripted.pool, true)).toEqual(expected)
      }),
    )

    it.each(['none', 'lane'] as const)(
      "delivers, gives up, replays and confirms, with order '%s'",
      async (order) => {
        await on(async (rig) => {
          const own = await named(rig, url)
          const at = { pool: own, queue: rig.queue, schema: SCHEMA }
          const id = await outbox(at).add(own, { body: { order: 7 }, lane: 'a' })
          await own.query(`select "${SCHEMA}".outbox_add($1, '{"order": 8}')`, [rig.queue])
          const { transport, hand } = await rig.start({ ...at, order, lease: '1s' })
          const both = [await hand.nth(1), await hand.nth(2)]
          const [dead, good] = both.toSorted((one) => (one.id === id ? -1 : 1))
          if (dead === undefined || good === undefined) throw new Error('not delivered')
          expect(await transport.enact(good, settle)).toMatchObject({ kind: 'done' })
          await transport.enact(dead, deadLetter())

          const source = postgresSource(at)
          rig.atEnd(() => source.close())
          expect([await source.depth(), await source.lag()]).toEqual([1, 0])
          const batch = await source.drain({ limit: 5 })
          await batch.release()
          expect(await source.depth()).toBe(0)
          await source.putBack(batch.deadLetters)
          expect(await source.depth()).toBe(1)
          const [drained] = batch.deadLetters
          if (drained === undefined) throw new Error('not drained')
          await source.publish({ deadLetter: drained, replayId: 'r-1' })
          const replayed = await hand.nth(3)
          expect(replayed).toMatchObject({ id, replayId: 'r-1' })
          await transport.enact(replayed, settle)
          const { confirmations } = await source.confirmations({ limit: 5 })
          expect(confirmations).toMatchObject([{ replayId: 'r-1', outcome: 'handled' }])
        })()
      },
    )

    it(
      'renews leases',
      on(async (rig) => {
        const own = await named(rig, url)
        const at = { pool: own, queue: rig.queue, schema: SCHEMA }
        await outbox(at).add(own, { body: 1 })
        const { transport, hand } = await rig.start({ ...at, lease: '1s' })
        const delivery = await hand.nth(1)
        const leaseOf = async () => {
          const text = `select lease_until::text as until from "${SCHEMA}".outbox`
          return (await own.query<{ until: string }>(text)).rows[0]?.until
        }
        const first = await leaseOf()
        await until('a later lease', async () => (await leaseOf()) !== first)
        expect(await transport.enact(delivery, settle)).toMatchObject({ kind: 'done' })
      }),
    )

    it.each([1, 10])('has its inbox, with %i messages in a transaction', async (batch) => {
      await on(async (rig) => {
        const own = await named(rig, url)
        const inbox = postgresInbox({ pool: own, batch, schema: SCHEMA })
        const consumer = rig.queue
        const handle = (key: string, fingerprint = 'f') =>
          inbox.handle({ consumer, key, fingerprint }, async () => undefined)
        expect(await Promise.all([handle('a'), handle('b')])).toEqual(['handled', 'handled'])
        expect(await Promise.all([handle('a'), handle('b', 'other')])).toEqual([
          'already_handled',
          'conflict',
        ])
        const keys = ['a', 'b', 'c']
        expect(await handledKeys(own, { consumer, keys, schema: SCHEMA })).toEqual(
          new Set(['a', 'b']),
        )
        expect(await countIn(own, `"${SCHEMA}".event_handled`)).toBe(2)
      })()
    })

    it(
      'deletes old keys of its inbox',
      on(async (rig) => {
        const own = await named(rig, url)
        const table = `"${SCHEMA}".event_handled`
        const text = `insert into ${table} (consumer, key, fingerprint, handled_at) values ($1, 'old', 'f', now() - interval '2 days')`
        await own.query(text, [rig.queue])
        const inbox = postgresInbox({ pool: own, retention: '1d', schema: SCHEMA })
        const entry = { consumer: rig.queue, key: 'new', fingerprint: 'f' }
        expect(await inbox.handle(entry, async () => undefined)).toBe('handled')
        await until('one key', async () => (await countIn(own, table)) === 1)
      }),
    )

    it(
      'accepts events of a sink and maintains its partitions',
      on(async (rig) => {
        const own = await named(rig, url)
        const at = { pool: own, queue: rig.queue, schema: SCHEMA }
        const sink = postgresSink(at)
        const { signal } = new AbortController()
        await sink.healthCheck({ signal })
        const event = { key: 'k', type: 't', at: Date.now(), headers: {}, lane: undefined }
        const bytes = Buffer.from('{}')
        const sent = { ...event, id: 'e-1', bytes, contentType: 'application/json' }
        await sink.send([sent, sent], { signal })
        expect(await countIn(own, `"${SCHEMA}".outbox`)).toBe(1)
        await own.query(
          `select "${SCHEMA}".outbox_make_partition((now() at time zone 'UTC')::date - 9)`,
        )
        const done = await maintain(own, { queue: rig.queue, ...KEEP, schema: SCHEMA })
        expect(done).toMatchObject({ partitionsDropped: 1, skipped: [] })
      }),
    )

    it(
      'shares nothing with an outbox in the default schema',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        await migrate(own, { schema: SCHEMA })
        const { queue } = rig
        await outbox({ queue }).add(own, { body: 'default' })
        await outbox({ queue, schema: SCHEMA }).add(own, { body: 'other' })
        const usual = await rig.start({ pool: own })
        const other = await rig.start({ pool: own, schema: SCHEMA })
        const bodyOf = async (hand: Hand) => Buffer.from((await hand.nth(1)).bytes).toString()
        expect(await bodyOf(usual.hand)).toBe('"default"')
        expect(await bodyOf(other.hand)).toBe('"other"')
        for (const { transport, hand } of [usual, other])
          expect(await transport.enact(await hand.nth(1), settle)).toMatchObject({ kind: 'done' })
        expect(await countIn(own, 'redrive.outbox')).toBe(1)
        expect(await countIn(own, `"${SCHEMA}".outbox`)).toBe(1)
      }),
    )

    it(
      'that is missing is named in the error, with the call that creates it',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        const advice = `Run migrate(pool, { schema: '${SCHEMA}' })`
        const opened = rig.transport({ pool: own, schema: SCHEMA }).open()
        expect((await refusal(opened)).message).toContain(advice)
        const added = outbox({ queue: rig.queue, schema: SCHEMA }).add(own, { body: 1 })
        expect((await refusal(added)).message).toContain(advice)
      }),
    )
  })
}
