import type { InboxEntry } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { describe, expect, it } from 'vitest'
import { postgresInbox } from '../src/index.ts'
import { onRig, type Rig } from './rig.ts'

const INSERT = 'insert into public.effect (name, number) values ($1, $2)'

const KEYS = Array.from({ length: 20 }, (_, at) => `k${at}`)

const entryOf = (rig: Rig, key: string, fingerprint = 'f'): InboxEntry => ({
  consumer: rig.queue,
  key,
  fingerprint,
})

const effect = (rig: Rig, number: number) => async (tx: PoolClient) => {
  await tx.query(INSERT, [rig.queue, number])
}

const effectsOf = async (rig: Rig): Promise<readonly number[]> => {
  const rows = await rig.query<{ number: number }>(
    'select number from public.effect where name = $1 order by number',
    [rig.queue],
  )
  return rows.map(({ number }) => number)
}

const keysOf = async (rig: Rig): Promise<number> =>
  (await rig.query('select from redrive.event_handled where consumer = $1', [rig.queue])).length

const NO_END = new AbortController().signal

export function batches(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a batched inbox', () => {
    it(
      'handles the messages that arrive together in one transaction',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: KEYS.length })
        const transactions = new Set<string>()
        const handle = (key: string) =>
          inbox.handle(entryOf(rig, key), async (tx) => {
            const { rows } = await tx.query<{ id: string }>(
              'select pg_current_xact_id()::text as id',
            )
            for (const { id } of rows) transactions.add(id)
          })
        const results = await Promise.all(KEYS.map(handle))
        expect(new Set(results)).toEqual(new Set(['handled']))
        expect([transactions.size, await keysOf(rig)]).toEqual([1, KEYS.length])
      }),
    )

    it(
      'takes no more messages into a transaction than its option',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 7 })
        const sizes = new Map<PoolClient, number>()
        await Promise.all(
          KEYS.map((key) =>
            inbox.handle(entryOf(rig, key), async (tx) => {
              sizes.set(tx, (sizes.get(tx) ?? 0) + 1)
            }),
          ),
        )
        expect([...sizes.values()].toSorted((a, b) => a - b)).toEqual([6, 7, 7])
      }),
    )

    it(
      'gives each message its own result when a handler fails, and no effect twice',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const results = await Promise.allSettled(
          KEYS.map((key, at) =>
            inbox.handle(entryOf(rig, key), async (tx) => {
              await effect(rig, at)(tx)
              if (at === 3 || at === 7) throw new Error(`no ${at}`)
            }),
          ),
        )
        const reasons = results.flatMap((one) =>
          one.status === 'rejected' ? [(one.reason as Error).message] : [],
        )
        expect(reasons).toEqual(['no 3', 'no 7'])
        expect(await effectsOf(rig)).toEqual(
          KEYS.map((_, at) => at).filter((at) => at !== 3 && at !== 7),
        )
        expect(await keysOf(rig)).toBe(KEYS.length - 2)
      }),
    )

    it(
      'blames only the handler that ignored a failed statement',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const results = await Promise.allSettled([
          inbox.handle(entryOf(rig, 'a'), effect(rig, 1)),
          inbox.handle(entryOf(rig, 'b'), async (tx) => {
            await tx.query('select 1 / 0').catch(() => undefined)
          }),
          inbox.handle(entryOf(rig, 'c'), effect(rig, 3)),
        ])
        expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
        expect([await effectsOf(rig), await keysOf(rig)]).toEqual([[1, 3], 2])
      }),
    )

    it(
      'handles a key once when it arrives several times, and rejects other content',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const handle = (key: string, fingerprint?: string) =>
          inbox.handle(entryOf(rig, key, fingerprint), effect(rig, 1))
        expect(await handle('before')).toBe('handled')
        const [first, second, ...others] = await Promise.all([
          handle('a'),
          handle('a'),
          handle('before'),
          handle('before', 'other'),
          handle('b'),
        ])
        // Either of two equal messages can be the one that is handled.
        expect(new Set([first, second])).toEqual(new Set(['handled', 'already_handled']))
        expect(others).toEqual(['already_handled', 'conflict', 'handled'])
        expect(await effectsOf(rig)).toEqual([1, 1, 1])
      }),
    )

    it(
      'has each effect once when two processes receive the same messages in another order',
      on(async (rig) => {
        const one = postgresInbox({ pool, batch: 10 })
        const other = postgresInbox({ pool, batch: 10 })
        const last = KEYS.length - 1
        const both = [
          ...KEYS.map((key, at) => one.handle(entryOf(rig, key), effect(rig, at))),
          ...KEYS.toReversed().map((key, at) =>
            other.handle(entryOf(rig, key), effect(rig, last - at)),
          ),
        ]
        const results = await Promise.all(both)
        expect(results.filter((result) => result === 'handled')).toHaveLength(KEYS.length)
        expect(await effectsOf(rig)).toEqual(KEYS.map((_, at) => at))
      }),
    )

    it(
      'does not let the messages behind a slow one wait longer than half of the timeout',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const slow = Promise.withResolvers<void>()
        const attempt = { signal: NO_END, timeoutMs: 1_500 }
        const first = inbox.handle(entryOf(rig, 'slow'), () => slow.promise, attempt)
        const others = ['a', 'b'].map((key, at) =>
          inbox.handle(entryOf(rig, key), effect(rig, at + 1), attempt),
        )
        expect(await Promise.all(others)).toEqual(['handled', 'handled'])
        expect(await effectsOf(rig)).toEqual([1, 2])
        slow.resolve()
        expect(await first).toBe('handled')
      }),
    )

    it(
      'lets a consumer run as many handlers as its transactions have room for',
      on(async (rig) => {
        const own = rig.ownPool(url)
        const { max } = own.options
        expect(postgresInbox({ pool: own }).maxConcurrency).toBe(max - 3)
        expect(postgresInbox({ pool: own, batch: 10 }).maxConcurrency).toBe((max - 3) * 10)
      }),
    )
  })

  it.each([0, 1_001, 1.5])('rejects a batch of %s', (batch) => {
    expect(() => postgresInbox({ pool, batch })).toThrow(/postgresInbox\(\)[^]*batch/)
  })
}
