import { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import {
  handledKeys,
  maintain,
  migrate,
  migrationSql,
  outbox,
  postgres,
  postgresInbox,
  postgresSink,
  postgresSource,
} from '../src/index.ts'

const POOL =
  "pool: expected a Pool of 'pg' such as new Pool({ connectionString: process.env.DATABASE_URL })"
const QUEUE = 'queue: expected the name of a queue'
const SCHEMA =
  "schema: expected the name of a schema with at most 63 lower-case letters, digits and '_', which does not start with 'pg_'"

const invalid = (call: string, ...problems: readonly string[]): unknown =>
  expect.objectContaining({
    code: 'POLICY_INVALID',
    message: [`The options of ${call} are invalid:`, ...problems].join('\n- '),
  })

describe('the options of PostgreSQL', () => {
  it('are reported together', () => {
    const options = {
      pool: new Pool({ max: 3 }),
      queue: '',
      order: 'queue',
      lease: '10ms',
      listen: 'yes',
      deliveredRetention: 'x',
      maintain: 1,
      schema: 'Orders',
      database: 'x',
    }
    expect(() => postgres(options as never)).toThrow(
      invalid(
        'postgres()',
        'pool: expected "max" of 4 or more, got 3: one connection to claim events, one to listen, one for maintenance, and at least one for handlers',
        `${QUEUE}, got ''`,
        "order: expected 'none' or 'lane', got 'queue'",
        "lease: expected a duration from 1s to 1d such as '250ms', '5s' or '2m', got '10ms'",
        "listen: expected true or false, got 'yes'",
        "deliveredRetention: expected a duration from 0ms to 3650d such as '250ms', '5s' or '2m', got 'x'",
        'maintain: expected true or false, got 1',
        `${SCHEMA}, got 'Orders'`,
        'database: unknown option; known options: deliveredRetention, lease, listen, maintain, order, pool, queue, schema',
      ),
    )
  })

  it.each([
    ['postgres()', postgres],
    ['postgresSource()', postgresSource],
    ['postgresSink()', postgresSink],
  ])('of %s require a pool and a queue', (call, create) => {
    expect(() => create({ pool: undefined, queue: undefined } as never)).toThrow(
      invalid(call, `${POOL}, got undefined`, `${QUEUE}, got undefined`),
    )
  })

  it('of an outbox and an inbox are checked as well', () => {
    expect(() => outbox({ pool: 'x' } as never)).toThrow(
      invalid('outbox()', `${QUEUE}, got nothing`, `${POOL}, got 'x'`),
    )
    expect(() => postgresInbox({ pool: undefined, retention: 0 } as never)).toThrow(
      invalid(
        'postgresInbox()',
        `${POOL}, got undefined`,
        "retention: expected a duration from 1ms to 3650d such as '250ms', '5s' or '2m', got 0",
      ),
    )
    expect(() => postgresInbox({ query: () => undefined } as never)).toThrow(
      invalid('postgresInbox()', 'transaction: expected a function, got nothing'),
    )
  })

  it.each(['', 'Orders', 'pg_orders', 'orders.outbox', 'orders"', '1st', 'o'.repeat(64)])(
    'reject the schema %j, whose name would need other quotes or is reserved',
    async (schema) => {
      const pool = new Pool()
      expect(() => outbox({ queue: 'orders', schema })).toThrow(SCHEMA)
      expect(() => postgresInbox({ pool, schema })).toThrow(SCHEMA)
      expect(() => migrationSql({ schema })).toThrow(SCHEMA)
      await expect(migrate(pool, { schema })).rejects.toThrow(SCHEMA)
      await expect(handledKeys(pool, { consumer: 'c', keys: [], schema })).rejects.toThrow(SCHEMA)
      await expect(
        maintain(pool, { deliveredRetention: '1d', deadLetterRetention: '1d', schema }),
      ).rejects.toThrow(SCHEMA)
    },
  )
})
