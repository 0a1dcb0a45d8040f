import { RedriveError } from '@redrive/core'
import { describe, expect, test } from 'vitest'
import {
  explainErrors,
  explainSqlState,
  isRejectedByServer,
  reportUnreachable,
} from '../src/index.ts'

const SCHEMA = { name: 'redrive_some', migrateCall: 'migrate(pool)', sqlCall: 'migrationSql()' }

const withCode = (code: string, more: object = {}) =>
  Object.assign(new Error('on purpose'), { code, ...more })

const rejection = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('explainSqlState', () => {
  test.each(['42P01', '42703', '42883', '3F000'])('explains how to migrate for %s', (code) => {
    const cause = withCode(code)
    const explained = explainSqlState(cause, SCHEMA)
    expect(explained).toMatchObject({ code: 'TOPOLOGY_MISMATCH', cause })
    expect((explained as Error).message).toBe(
      'The schema "redrive_some" is missing in this database, or is older than this release. Run migrate(pool) once, or ask an administrator to run the output of migrationSql().',
    )
  })

  test.each([
    ['42501', 'The database role has no permission on the schema "redrive_some".'],
    ['25006', 'Connect to the primary.'],
  ])('explains what to do for %s', (code, text) => {
    const explained = explainSqlState(withCode(code), SCHEMA)
    expect(explained).toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
    expect((explained as Error).message).toContain(text)
  })

  test.each(['ECONNREFUSED', 'EPIPE', '08006', '28P01', '53300', '57P01'])(
    'reports %s as an unreachable database',
    (code) => {
      expect(explainSqlState(withCode(code), SCHEMA)).toMatchObject({
        code: 'UNREACHABLE',
        message: 'Cannot connect to PostgreSQL: on purpose',
      })
    },
  )

  test('explains an error that a client has wrapped', () => {
    const wrapped = new Error('query failed', { cause: withCode('42P01') })
    expect(explainSqlState(wrapped, SCHEMA)).toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
  })

  test.each([
    withCode('23505'),
    new Error('of the caller'),
    new RedriveError('REFUSED', 'no'),
    'text',
    undefined,
  ])('returns %s unchanged', (error) => {
    expect(explainSqlState(error, SCHEMA)).toBe(error)
  })
})

describe('a call of pg', () => {
  test.each([reportUnreachable, explainErrors(SCHEMA)])(
    'reports an error without a code as an unreachable database',
    async (call) => {
      const cause = new Error('Connection terminated unexpectedly')
      const error = await rejection(call(() => Promise.reject(cause)))
      expect(error).toMatchObject({ code: 'UNREACHABLE', cause })
    },
  )

  test.each([reportUnreachable, explainErrors(SCHEMA)])(
    'keeps a programming error and an error of a statement',
    async (call) => {
      for (const error of [new TypeError('circular'), withCode('22012')]) {
        expect(await rejection(call(() => Promise.reject(error)))).toBe(error)
      }
    },
  )

  test('keeps a missing table, unless it is to be explained', async () => {
    const missing = withCode('42P01')
    const failing = () => Promise.reject(missing)
    expect(await rejection(reportUnreachable(failing))).toBe(missing)
    expect(await rejection(explainErrors(SCHEMA)(failing))).toMatchObject({
      code: 'TOPOLOGY_MISMATCH',
    })
  })
})

test.each([
  ['23505', 'ERROR', true],
  ['23505', 'FATAL', false],
  ['57P01', 'ERROR', false],
  ['08006', 'ERROR', false],
  ['25006', 'ERROR', false],
  ['ECONNRESET', undefined, false],
])('isRejectedByServer: %s with severity %s is %s', (code, severity, expected) => {
  expect(isRejectedByServer(withCode(code, { severity }))).toBe(expected)
})
