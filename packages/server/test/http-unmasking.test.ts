import type { ApiError } from '@redrive/api'
import { ROUTES } from '@redrive/api/internal'
import { afterEach, describe, expect, test } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import type { Audit } from '../src/audit/audit.ts'
import { COUNT_UNMASKED } from '../src/audit/statements.ts'
import { Authorizer } from '../src/operations/authorize.ts'
import { tamper } from './audit-stage.ts'
import { database, fill, PEOPLE, staged } from './http-stage.ts'

const pool = await database('redrive_server_unmasking')
/** The second credential of a person: the same person with another session. */
const people = { ...PEOPLE, again: { ...PEOPLE['admin'], credential: 'another' } as const }
const stage = await staged(pool, { unmaskedPerHour: 3, people: people as typeof PEOPLE })
const { as, audit, catalog } = stage
// The newest is first.
const ids = (await fill(catalog, 'orders', 5, (at) => ({ at }))).ids.toReversed()

const unmask = (who: string, at: number) =>
  as(who)
    .call('getPayload', { params: { id: ids[at] ?? '' }, query: { reason: 'ticket 7' } })
    .then(
      ({ text }) => text ?? '',
      (error: unknown) => (error as ApiError).problem,
    )

/** Returns a function that resolves when it has been called this many times. */
function barrier(times: number): () => Promise<void> {
  const reached = Promise.withResolvers<void>()
  let calls = 0
  return () => {
    calls += 1
    if (calls === times) reached.resolve()
    return reached.promise
  }
}

const HOUR_MS = 3_600_000
/** Makes all entries an hour older, as if the time had passed. */
const anHourLater = () => tamper(pool, `update redrive_server.audit set at_ms = at_ms - ${HOUR_MS}`)

afterEach(anHourLater)

describe('original messages', () => {
  test('are limited in an hour, for all credentials of a person', async () => {
    expect(await unmask('admin', 0)).toBe('{"at":0}')
    expect(await unmask('again', 1)).toBe('{"at":1}')
    expect(await unmask('admin', 2)).toBe('{"at":2}')
    for (const who of ['admin', 'again']) {
      expect(await unmask(who, 3)).toMatchObject({
        code: 'too_many_requests',
        detail: expect.stringContaining('3 original messages in the last hour') as string,
      })
    }
    expect(await unmask('second', 3)).toBe('{"at":3}')
    const { entries } = await audit.read({ person: 'admin', limit: 1 })
    expect(entries[0]).toMatchObject({
      operation: 'getPayload',
      outcome: 'denied',
      facts: { unmaskedPerHour: 3, reason: 'ticket 7' },
    })
    await anHourLater()
    expect(await unmask('admin', 3)).toBe('{"at":3}')
  })

  test('are limited for concurrent requests, and exactly the limit is shown', async () => {
    const results = await Promise.all(ids.map((_, at) => unmask('admin', at)))
    const shown = results.filter((one) => typeof one === 'string')
    expect(shown).toHaveLength(3)
    const { entries } = await audit.read({ person: 'admin', limit: 5 })
    const outcomes = entries.map(({ outcome }) => outcome).sort()
    expect(outcomes).toEqual(['denied', 'denied', 'viewed', 'viewed', 'viewed'])
  })

  test('are counted in turn, so that requests at the same time do not reject each other', async () => {
    const count: Audit['countUnmasked'] = (person, atMost) => audit.countUnmasked(person, atMost)
    const limit = { perHour: 3, count }
    const authorizer = new Authorizer(catalog, audit.write, () => Promise.resolve(), limit)
    const caller = PEOPLE['second'] as Caller
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => authorizer.unmask({ caller, operation: 'getPayload' })),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    const { entries } = await audit.read({ person: caller.person, limit: 5 })
    const outcomes = entries.map(({ outcome }) => outcome).sort()
    expect(outcomes).toEqual(['denied', 'denied', 'viewed', 'viewed', 'viewed'])
  })

  test('are limited for requests to several processes: exactly the limit is shown', async () => {
    const caller = PEOPLE['owner'] as Caller
    // Both processes count before one of them writes, and both write before one of them counts again.
    const [bothCounted, bothWritten] = [barrier(2), barrier(2)]
    const count: Audit['countUnmasked'] = async (...asked) => {
      const result = await audit.countUnmasked(...asked)
      await bothCounted()
      return result
    }
    const write: Audit['write'] = async (entry) => {
      const sequence = await audit.write(entry)
      await bothWritten()
      return sequence
    }
    const insist = () => Promise.resolve()
    const processes = [0, 1].map(
      () => new Authorizer(catalog, write, insist, { perHour: 1, count }),
    )
    const results = await Promise.allSettled(
      processes.map((one) => one.unmask({ caller, operation: 'getPayload' })),
    )
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const { entries } = await audit.read({ person: caller.person, limit: 5 })
    expect(entries.map(({ outcome }) => outcome)).toEqual(['denied', 'viewed', 'viewed'])
  })

  test('do not count when they are masked', async () => {
    for (const id of ids) await as('admin').call('getDeadLetter', { params: { id } })
    expect(await unmask('admin', 0)).toBe('{"at":0}')
  })

  test('are shown by the operations that the limit counts, and by no other', () => {
    const operations = Object.entries(ROUTES).flatMap(([name, { needs }]) =>
      needs === 'view_unmasked' ? [name] : [],
    )
    expect(operations).toEqual(['getPayload', 'getSetAsidePayload'])
    for (const name of operations) expect(COUNT_UNMASKED).toContain(`'${name}'`)
  })
})
