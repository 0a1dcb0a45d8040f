import { poolOn, urlOf } from '@redrive/dev-support'
import type { PoolClient } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { maintain, postgresInbox } from '../src/index.ts'
import { lanes } from './lane.suite.ts'
import { leases } from './lease.suite.ts'
import { onRig, type Rig, until } from './rig.ts'
import { freshDatabase } from './services.ts'

const DATABASE = 'redrive_tests_pooler'
const COUNT = 300

const url = Object.assign(new URL(await urlOf('pgbouncer')), { pathname: `/${DATABASE}` }).href
const direct = poolOn(await freshDatabase('postgres', DATABASE), 40)
const pool = poolOn(url, 40)
afterAll(() => Promise.all([pool.end(), direct.end()]))
await direct.query('create table public.effect (name text, number integer)')

const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

describe('behind PgBouncer in transaction mode', () => {
  describe('claims and leases', () => {
    leases(pool)
  })
  describe('lanes', () => {
    lanes(url, pool)
  })

  describe.concurrent('an inbox', () => {
    it.each([
      ['without "listen"', false],
      ['with "listen", which the pooler breaks', true],
    ])('handles each event once, %s', async (_, listen) => {
      await on(async (rig) => {
        await rig.consume<PoolClient>(
          ({ body }, { tx }) =>
            tx.query('insert into public.effect values ($1, $2)', [rig.queue, body]),
          { transport: rig.transport({ listen }), inbox: postgresInbox({ pool }) },
        )
        await rig.addMany(COUNT)
        rig.outbox.wake()
        await until('all delivered', async () => {
          const rows = await rig.rows()
          return rows.filter(({ status }) => status === 'delivered').length === COUNT
        })
        const [effects] = await rig.query(
          'select count(*)::integer as all, count(distinct number)::integer as different from public.effect where name = $1',
          [rig.queue],
        )
        expect(effects).toEqual({ all: COUNT, different: COUNT })
      })()
    })
  })

  describe.concurrent('a producer', () => {
    it(
      'adds in its transaction, and not after a rollback',
      on(async (rig) => {
        const client = await pool.connect()
        for (const [end, body] of [
          ['rollback', 'undone'],
          ['commit', 'kept'],
        ] as const) {
          await client.query('begin')
          await rig.outbox.add(client, { body })
          await client.query(end)
        }
        client.release()
        const rows = await rig.query<{ payload: Buffer }>(
          'select payload from redrive.outbox where queue = $1',
          [rig.queue],
        )
        expect(rows.map(({ payload }) => payload.toString())).toEqual(['"kept"'])
      }),
    )
  })

  it(
    'maintenance deletes expired events',
    on(async (rig) => {
      await rig.query(
        `insert into redrive.outbox (id, queue, status, due_at, delivered_at, payload)
          values (redrive.uuid_v7(now() - interval '40 days'), $1, 'delivered', null, now() - interval '40 days', '')`,
        [rig.queue],
      )
      const options = {
        queue: rig.queue,
        deliveredRetention: '1d',
        deadLetterRetention: '1d',
      } as const
      expect(await maintain(pool, options)).toMatchObject({ rowsDeleted: 1 })
      expect(await rig.rows()).toEqual([])
    }),
  )
})
