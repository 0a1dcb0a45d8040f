import { randomUUID } from 'node:crypto'
import { emptyDatabase, poolOn } from '@redrive/dev-support'
import { FIRST_CYCLE } from '@redrive/core'
import { aFailure } from '@redrive/dev-support'
import type { StoredDeadLetter } from '@redrive/runtime'
import { afterAll, describe, expect, it } from 'vitest'
import { migrate, missingMigrations, postgresStore } from '../src/index.ts'

const url = await emptyDatabase('redrive_store_test')
const pool = poolOn(url, 10)
afterAll(() => pool.end())

const deadLetter = (id: string, text = id): StoredDeadLetter => ({
  id,
  sink: 'sink',
  reason: 'attempts_exhausted',
  job: undefined,
  savedAt: 1,
  failure: aFailure({ class: 'transient' }),
  cycle: { ...FIRST_CYCLE, attempts: 3, firstFailedAt: 1 },
  event: {
    id,
    key: id,
    type: 'order.paid',
    lane: undefined,
    at: 1,
    bytes: Buffer.from(text),
    contentType: 'text/plain',
    headers: {},
  },
})

describe('postgresStore', () => {
  it('explains how to create its tables, and migrates once', async () => {
    const store = postgresStore({ pool })
    await expect(store.stats()).rejects.toThrow('Run migrate(pool) once')
    expect(await migrate(pool)).toEqual(['0001-dead-letters'])
    expect(await migrate(pool)).toEqual([])
    expect(await missingMigrations(pool)).toEqual([])
    expect((await store.stats()).count).toBe(0)
  })

  it('saves thousands of concurrent dead letters, several in a statement', async () => {
    const store = postgresStore({ pool, name: randomUUID() })
    const ids = Array.from({ length: 3_000 }, (_, index) => `event-${index}`)
    await Promise.all(ids.map((id) => store.save(deadLetter(id))))
    expect((await store.stats()).count).toBe(3_000)
    await store.close()
  })

  it('keeps the last of two concurrent saves of an id', async () => {
    const store = postgresStore({ pool, name: randomUUID() })
    await Promise.all([store.save(deadLetter('a', 'first')), store.save(deadLetter('a', 'last'))])
    const found = await store.get('a')
    expect(Buffer.from(found?.event.bytes ?? []).toString()).toBe('last')
    await store.close()
  })

  it('stores ids with characters that PostgreSQL rejects', async () => {
    const store = postgresStore({ pool, name: randomUUID() })
    const ids = ['zero\0', 'lone\ud800', 'quote\'"\\']
    for (const id of ids) await store.save(deadLetter(id))
    const { deadLetters } = await store.list({ limit: 10 })
    expect(deadLetters.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    for (const id of ids) expect(await store.delete(id)).toBe(true)
    await store.close()
  })

  it('separates stores by name', async () => {
    const [one, other] = [
      postgresStore({ pool, name: 'one' }),
      postgresStore({ pool, name: 'other' }),
    ]
    await one.save(deadLetter('a'))
    expect(await other.get('a')).toBeUndefined()
    await Promise.all([one.close(), other.close()])
  })

  it('reports all problems of its options together', () => {
    const options = { pool: {}, name: 'a b', maxEntries: 0, lease: '1ms' } as never
    expect(() => postgresStore(options)).toThrow(
      /pool: .*\n.*name: .*\n.*maxEntries: .*\n.*lease: /,
    )
  })
})
