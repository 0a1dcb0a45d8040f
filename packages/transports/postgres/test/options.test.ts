import { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { outbox, postgres, postgresInbox, postgresSink, postgresSource } from '../src/index.ts'

const POOL =
  "pool: expected a Pool of 'pg' such as new Pool({ connectionString: process.env.DATABASE_URL })"
const QUEUE = 'queue: expected the name of a queue'

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
      schema: 'redrive',
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
        'schema: unknown option; known options: deliveredRetention, lease, listen, maintain, order, pool, queue',
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
})
