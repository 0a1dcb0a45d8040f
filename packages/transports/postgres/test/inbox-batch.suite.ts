import type { InboxEntry } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { until } from '@redrive/testing'
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
        // Either of two equal messages can be handled.
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
        const attempt = { signal: NO_END, timeoutMs: 1_501 }
        const runs: string[] = []
        const first = inbox.handle(
          entryOf(rig, 'slow'),
          async () => {
            runs.push('begin')
            await slow.promise
            runs.push('end')
          },
          attempt,
        )
        const others = ['a', 'b'].map((key, at) =>
          inbox.handle(entryOf(rig, key), effect(rig, at + 1), attempt),
        )
        expect(await Promise.all(others)).toEqual(['handled', 'handled'])
        expect(await effectsOf(rig)).toEqual([1, 2])
        slow.resolve()
        expect(await first).toBe('handled')
        // Never two at the same time.
        expect(runs).toEqual(['begin', 'end', 'begin', 'end'])
      }),
    )

    it(
      'ends a statement that waits for a lock, so that it holds no others',
      on(async (rig) => {
        await rig.query(INSERT, [rig.queue, 1])
        const holder = await pool.connect()
        await holder.query('begin')
        const lock = 'select from public.effect where name = $1 and number = 1 for update'
        await holder.query(lock, [rig.queue])
        const inbox = postgresInbox({ pool, batch: 100 })
        const attempt = { signal: NO_END, timeoutMs: 8_000 }
        const pids: number[] = []
        const blocked = inbox.handle(
          entryOf(rig, 'blocked'),
          async (tx) => {
            const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
            for (const { pid } of rows) pids.push(pid)
            await tx.query(lock, [rig.queue])
          },
          attempt,
        )
        const others = ['a', 'b'].map((key, at) =>
          inbox.handle(entryOf(rig, key), effect(rig, at + 2), attempt),
        )
        expect(await Promise.all(others)).toEqual(['handled', 'handled'])
        await until(
          'the statement of the batch to end',
          () =>
            rig.query('select from pg_stat_activity where pid = $1 and wait_event_type = $2', [
              pids[0],
              'Lock',
            ]),
          { accept: (rows) => rows.length === 0 },
        )
        await holder.query('rollback')
        holder.release()
        expect(await blocked).toBe('handled')
      }),
    )

    it.each(['commit', 'rollback'])('loses no message when a handler runs "%s"', (statement) =>
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const results = await Promise.allSettled([
          inbox.handle(entryOf(rig, 'a'), effect(rig, 1)),
          inbox.handle(entryOf(rig, 'b'), async (tx) => void (await tx.query(statement))),
          inbox.handle(entryOf(rig, 'c'), effect(rig, 3)),
          inbox.handle(entryOf(rig, 'd'), async () => {
            throw new Error('not now')
          }),
        ])
        expect(results.map(({ status }) => status)).toEqual([
          ...['fulfilled', 'rejected', 'fulfilled', 'rejected'],
        ])
        // The commit of the handler made the effect of "a" permanent before its key.
        const twice = statement === 'commit' ? [1] : []
        expect(await effectsOf(rig)).toEqual([...twice, 1, 3])
        expect(await inbox.handle(entryOf(rig, 'd'), effect(rig, 4))).toBe('handled')
      })(),
    )

    it(
      'handles the next messages when handlers never end',
      on(async (rig) => {
        const own = rig.ownPool(url, 4)
        const inbox = postgresInbox({ pool: own, batch: 2 })
        const end = new AbortController()
        const attempt = { signal: end.signal, timeoutMs: 60_000 }
        const never = new Promise<void>(() => undefined)
        const running = Promise.withResolvers<void>()
        void inbox.handle(
          entryOf(rig, 'hung'),
          () => {
            running.resolve()
            return never
          },
          attempt,
        )
        await running.promise
        const next = inbox.handle(entryOf(rig, 'next'), effect(rig, 1))
        end.abort(new Error('timeout'))
        expect(await next).toBe('handled')
      }),
    )

    it(
      'rejects a message whose attempt ended while it waited, and handles the others together',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const reason = new Error('timeout')
        const ended = { signal: AbortSignal.abort(reason), timeoutMs: 1_000 }
        const results = await Promise.allSettled([
          inbox.handle(entryOf(rig, 'late'), effect(rig, 1), ended),
          ...['a', 'b'].map((key, at) => inbox.handle(entryOf(rig, key), effect(rig, at + 2))),
        ])
        expect(results).toEqual([
          { status: 'rejected', reason },
          { status: 'fulfilled', value: 'handled' },
          { status: 'fulfilled', value: 'handled' },
        ])
        expect(await effectsOf(rig)).toEqual([2, 3])
      }),
    )

    it(
      'handles a message that failed before in its own transaction',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, batch: 100 })
        const transactions: string[] = []
        const handle = (key: string, isRetry: boolean) =>
          inbox.handle(
            entryOf(rig, key),
            async (tx) => {
              const { rows } = await tx.query<{ id: string }>(
                'select pg_current_xact_id()::text as id',
              )
              transactions.push(`${key} ${rows[0]?.id}`)
            },
            { signal: NO_END, timeoutMs: 10_000, isRetry },
          )
        await Promise.all([handle('a', false), handle('again', true), handle('b', false)])
        const idOf = (key: string) =>
          transactions.find((one) => one.startsWith(`${key} `))?.split(' ')[1]
        expect(idOf('a')).toBe(idOf('b'))
        expect(idOf('again')).not.toBe(idOf('a'))
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
