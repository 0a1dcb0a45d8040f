import { isRedriveError } from '@redrive/core'
import type { Inbox, InboxResult, InboxEntry } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { describe, expect, it } from 'vitest'
import { handledKeys, inTransaction, postgresInbox, type Queryable } from '../src/index.ts'
import { CLIENTS, type Client } from './clients.ts'
import { ownDatabase } from './database.ts'
import { broken, hooked, onRig, type Rig, refusal, until, within } from './rig.ts'

const INSERT = 'insert into public.effect (name, number) values ($1, $2)'

const entryOf = (rig: Rig, fingerprint = 'f', key = 'k'): InboxEntry => ({
  consumer: rig.queue,
  key,
  fingerprint,
})

/** The same message, edited by a user. */
const editOf = (rig: Rig, replaces = 'k', edit = 'edited'): InboxEntry => ({
  ...entryOf(rig, edit, `${replaces}/${edit}`),
  replaces,
})

const effectsOf = async (rig: Rig): Promise<number> =>
  (await rig.query('select from public.effect where name = $1', [rig.queue])).length

const keysOf = async (rig: Rig): Promise<readonly string[]> => {
  const rows = await rig.query<{ key: string }>(
    'select key from redrive.event_handled where consumer = $1 order by key',
    [rig.queue],
  )
  return rows.map(({ key }) => key)
}

/** Waits until a connection of the rig waits for the lock of the key. */
const blocked = (rig: Rig) =>
  until('the second waits for the first', async () => {
    const waiting = await rig.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and application_name = $1
       and query like '%insert into redrive.event_handled%'`,
      [rig.queue],
    )
    return waiting.length > 0
  })

/** Sets the application name to the queue, for every client. */
function ownUrl(rig: Rig, url: string): string {
  const own = new URL(url)
  own.searchParams.set('application_name', rig.queue)
  return own.href
}

/** An inbox on a client, and a function that has an effect in its transaction. */
interface Subject {
  readonly inbox: Inbox<Queryable>
  readonly effect: (tx: Queryable) => Promise<void>
}

const ofClient = (rig: Rig, client: Client): Subject => ({
  inbox: postgresInbox<Queryable>({
    transaction: (work) => client.transaction(work),
    query: (tx) => tx,
  }),
  effect: async (tx) => void (await tx.query(INSERT, [rig.queue, 1])),
})

const SUBJECTS: readonly (readonly [string, (rig: Rig, url: string) => Subject])[] = [
  [
    'a pool of pg',
    (rig, url) => ({
      // These tests only need the query method of a client.
      inbox: postgresInbox({ pool: rig.ownPool(url) }) as unknown as Inbox<Queryable>,
      effect: async (tx) => void (await tx.query(INSERT, [rig.queue, 1])),
    }),
  ],
  ...CLIENTS.map(
    ([name, open]) =>
      [
        name,
        (rig: Rig, url: string) => {
          const client = open(ownUrl(rig, url))
          rig.atEnd(() => client.end())
          return ofClient(rig, client)
        },
      ] as const,
  ),
]

/** An inbox that runs a function after its first key was inserted. */
function inboxWith(pool: Pool, afterFirst: () => Promise<void>): Inbox<Queryable> {
  let isFirst = true
  return postgresInbox<Queryable>({
    transaction: (work) => inTransaction(pool, work),
    query: (tx) => ({
      async query(text, params) {
        const answer = await tx.query(text, params)
        if (isFirst && text.includes('insert')) {
          isFirst = false
          await afterFirst()
        }
        return answer
      },
    }),
  })
}

export function inboxes(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent.each(SUBJECTS)('an inbox over %s', (_, subjectOf) => {
    const onSubject = (test: (rig: Rig, subject: Subject) => Promise<void>) =>
      on((rig) => test(rig, subjectOf(rig, url)))

    it(
      'handles a key once, and never handles other content with the same key',
      onSubject(async (rig, { inbox, effect }) => {
        expect(await inbox.handle(entryOf(rig), effect)).toBe('handled')
        expect(await inbox.handle(entryOf(rig), effect)).toBe('already_handled')
        expect(await inbox.handle(entryOf(rig, 'other'), effect)).toBe('conflict')
        expect(await effectsOf(rig)).toBe(1)
        expect(await inbox.handle(entryOf(rig, 'f', 'another'), effect)).toBe('handled')
        expect(await effectsOf(rig)).toBe(2)
      }),
    )

    it(
      'lets either an edited message or its original take effect, whichever is first',
      onSubject(async (rig, { inbox, effect }) => {
        expect(await inbox.handle(editOf(rig), effect)).toBe('handled')
        expect(await inbox.handle(entryOf(rig), effect), 'the original').toBe('already_handled')
        expect(await inbox.handle(editOf(rig), effect)).toBe('already_handled')
        expect(await inbox.handle(editOf(rig, 'k', 'third'), effect)).toBe('already_handled')
        expect(await effectsOf(rig)).toBe(1)
        expect(await keysOf(rig)).toEqual(['k', 'k/edited'])
        await inbox.handle(entryOf(rig, 'f', 'other'), effect)
        expect(await inbox.handle(editOf(rig, 'other'), effect)).toBe('already_handled')
        expect(await keysOf(rig), 'what is not handled leaves no trace').not.toContain(
          'other/edited',
        )
        const conflict = { ...editOf(rig), fingerprint: 'x' }
        expect(await inbox.handle(conflict, effect)).toBe('conflict')
        expect(await effectsOf(rig)).toBe(2)
        // A key that sorts before the replaced one, to test the order of the inserts.
        const early = { ...entryOf(rig, 'f', 'early'), replaces: 'late' }
        expect(await inbox.handle(early, effect)).toBe('handled')
        expect(await inbox.handle({ ...early, fingerprint: 'x' }, effect)).toBe('conflict')
        expect(await effectsOf(rig)).toBe(3)
      }),
    )

    it(
      'makes the second of two concurrent deliveries wait, and skips it when the first has committed',
      onSubject(async (rig, { inbox, effect }) => {
        const gate = Promise.withResolvers<void>()
        const entered = Promise.withResolvers<void>()
        let runs = 0
        const first = inbox.handle(entryOf(rig), async (tx) => {
          runs += 1
          await effect(tx)
          entered.resolve()
          await gate.promise
        })
        await entered.promise
        expect([await keysOf(rig), await effectsOf(rig)]).toEqual([[], 0])
        const second = inbox.handle(entryOf(rig), async (tx) => {
          runs += 1
          await effect(tx)
        })
        await blocked(rig)
        gate.resolve()
        expect(await Promise.all([first, second])).toEqual(['handled', 'already_handled'])
        expect([runs, await effectsOf(rig)]).toEqual([1, 1])
      }),
    )

    it(
      'stores neither effects nor the key of a failed handler, so the next attempt handles it',
      onSubject(async (rig, { inbox, effect }) => {
        const failing = inbox.handle(entryOf(rig), async (tx) => {
          await effect(tx)
          throw new Error('on purpose')
        })
        expect((await refusal(failing)).message).toBe('on purpose')
        expect([await keysOf(rig), await effectsOf(rig)]).toEqual([[], 0])
        expect(await inbox.handle(entryOf(rig), effect)).toBe('handled')
        expect([await keysOf(rig), await effectsOf(rig)]).toEqual([['k'], 1])
      }),
    )

    it(
      'counts nothing as handled when a handler ignores the error of a statement',
      onSubject(async (rig, { inbox, effect }) => {
        const swallowing = inbox.handle(entryOf(rig), async (tx) => {
          await effect(tx)
          await tx.query('select * from nowhere', []).catch(() => undefined)
        })
        expect(await refusal(swallowing)).toBeInstanceOf(Error)
        expect([await keysOf(rig), await effectsOf(rig)]).toEqual([[], 0])
        expect(await inbox.handle(entryOf(rig), effect)).toBe('handled')
      }),
    )
  })

  describe.concurrent('an inbox', () => {
    it(
      'lets the second of two concurrent deliveries run when the first fails',
      on(async (rig) => {
        const inbox = postgresInbox({ pool: rig.ownPool(url) })
        const gate = Promise.withResolvers<void>()
        const entered = Promise.withResolvers<void>()
        const first = inbox.handle(entryOf(rig), async () => {
          entered.resolve()
          await gate.promise
          throw new Error('on purpose')
        })
        await entered.promise
        const second = inbox.handle(entryOf(rig), async (tx) => {
          await tx.query(INSERT, [rig.queue, 2])
        })
        await blocked(rig)
        gate.resolve()
        const answers = await Promise.allSettled([first, second])
        expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
        expect(await effectsOf(rig)).toBe(1)
      }),
    )

    it(
      'makes an original wait for its edit, and an edit for its original',
      on(async (rig) => {
        const inbox = postgresInbox({ pool: rig.ownPool(url) })
        for (const [number, order] of [
          [1, [editOf(rig, 'a'), entryOf(rig, 'f', 'a')]],
          [2, [entryOf(rig, 'f', 'b'), editOf(rig, 'b')]],
        ] as const) {
          const gate = Promise.withResolvers<void>()
          const entered = Promise.withResolvers<void>()
          const first = inbox.handle(order[0], async (tx) => {
            await tx.query(INSERT, [rig.queue, number])
            entered.resolve()
            await gate.promise
          })
          await entered.promise
          const second = inbox.handle(order[1], async (tx) => {
            await tx.query(INSERT, [rig.queue, number])
          })
          await blocked(rig)
          gate.resolve()
          expect(await Promise.all([first, second])).toEqual(['handled', 'already_handled'])
          expect(await effectsOf(rig)).toBe(number)
        }
      }),
    )

    it(
      'avoids a deadlock of two edits',
      on(async (rig) => {
        const one = { ...entryOf(rig, 'f', 'a'), replaces: 'b' }
        const other = { ...entryOf(rig, 'g', 'b'), replaces: 'a' }
        const gate = Promise.withResolvers<void>()
        const entered = Promise.withResolvers<void>()
        let isSecondIn = false
        const slow = inboxWith(pool, async () => {
          entered.resolve()
          await gate.promise
        })
        const quick = inboxWith(rig.ownPool(url), async () => {
          isSecondIn = true
        })
        const first = slow.handle(one, () => Promise.resolve())
        await entered.promise
        const second = quick.handle(other, () => Promise.resolve())
        await until('the second has a key, or waits for one', async () => {
          const waiting = `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`
          return isSecondIn || (await rig.query(waiting, [rig.queue])).length > 0
        })
        gate.resolve()
        expect(await Promise.all([first, second])).toEqual(['handled', 'already_handled'])
      }),
    )

    it(
      'handles a message that replaces itself like any other',
      on(async (rig) => {
        const inbox = postgresInbox({ pool })
        const itself = { ...entryOf(rig), replaces: 'k' }
        const work = () => Promise.resolve()
        expect(await inbox.handle(itself, work)).toBe('handled')
        expect(await inbox.handle(itself, work)).toBe('already_handled')
      }),
    )

    it(
      'returns which keys of a consumer are handled or replaced',
      on(async (rig) => {
        const inbox = postgresInbox({ pool })
        const work = () => Promise.resolve()
        await inbox.handle(entryOf(rig, 'f', 'a'), work)
        await inbox.handle(editOf(rig, 'b'), work)
        await inbox.handle({ ...entryOf(rig, 'f', 'c'), consumer: `${rig.queue}-other` }, work)
        const asked = { consumer: rig.queue, keys: ['a', 'b', 'b/edited', 'c', 'd'] }
        expect(await handledKeys(pool, asked)).toEqual(new Set(['a', 'b', 'b/edited']))
        expect(await handledKeys(pool, { consumer: rig.queue, keys: [] })).toEqual(new Set())
      }),
    )

    it(
      'separates consumers',
      on(async (rig) => {
        const inbox = postgresInbox({ pool })
        const work = () => Promise.resolve()
        expect(await inbox.handle(entryOf(rig), work)).toBe('handled')
        const other = { ...entryOf(rig), consumer: `${rig.queue}-other` }
        expect(await inbox.handle(other, work)).toBe('handled')
      }),
    )

    it(
      'gives events of one key one effect, even with two concurrent consumers',
      on(async (rig) => {
        const inbox = postgresInbox({ pool })
        for (let count = 0; count < 2; count++) {
          await rig.consume<PoolClient>(
            async (_, { tx }) => void (await tx.query(INSERT, [rig.queue, count])),
            { inbox },
          )
        }
        await rig.addMany(60, (index) => ({ key: `key-${index % 10}`, body: 'same' }))
        await until('all', async () => (await rig.count('delivered')) === 60)
        expect(await effectsOf(rig)).toBe(10)
        expect(await keysOf(rig)).toHaveLength(10)
      }),
    )

    it(
      'dead-letters an event whose key was handled with other content',
      on(async (rig) => {
        let runs = 0
        const first = await rig.add({ key: 'k', body: 1 })
        await rig.consume<PoolClient>(() => void (runs += 1), { inbox: postgresInbox({ pool }) })
        await rig.becomes(first, 'delivered')
        const second = await rig.add({ key: 'k', body: 2 })
        await rig.becomes(second, 'failed')
        expect(runs).toBe(1)
        expect(await rig.row(second)).toMatchObject({
          attempts: 1,
          reason: 'terminal',
          cycle: { history: [expect.objectContaining({ code: 'KEY_CONFLICT' })] },
        })
      }),
    )

    it(
      'handles nothing when its connection ends before the commit, and the retry handles it once',
      on(async (rig) => {
        let runs = 0
        const id = await rig.add()
        await rig.consume<PoolClient>(
          async (_, { tx }) => {
            runs += 1
            await tx.query(INSERT, [rig.queue, runs])
            if (runs > 1) return
            const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
            await rig.kill(rows.map(({ pid }) => pid))
          },
          { inbox: postgresInbox({ pool: rig.ownPool(url) }) },
        )
        await rig.becomes(id, 'delivered')
        expect(runs).toBe(2)
        expect(
          await rig.query('select number from public.effect where name = $1', [rig.queue]),
        ).toEqual([{ number: 2 }])
        expect((await rig.row(id)).attempts).toBe(1)
      }),
    )

    it(
      'has handled the key when the answer to the commit is lost, and skips the retry',
      on(async (rig) => {
        let runs = 0
        let isLosing = true
        const own = hooked(pool, {
          after({ text }) {
            if (text !== 'commit' || !isLosing || runs === 0) return
            isLosing = false
            throw broken()
          },
        })
        const id = await rig.add()
        await rig.consume<PoolClient>(
          async (_, { tx }) => {
            runs += 1
            await tx.query(INSERT, [rig.queue, runs])
          },
          { inbox: postgresInbox({ pool: own }) },
        )
        await rig.becomes(id, 'delivered')
        expect([runs, await effectsOf(rig), isLosing]).toEqual([1, 1, false])
      }),
    )

    it(
      'reports no conflict when a key is deleted while it is read',
      on(async (rig) => {
        const forgetful: Queryable = {
          async query(text, params) {
            const { rows } = await pool.query<Record<string, unknown>>(text, params)
            if (text.includes('insert')) await rig.query(FORGET_ALL, [rig.queue])
            return rows
          },
        }
        const inbox = postgresInbox<Queryable>({
          transaction: (work) => work(forgetful),
          query: (tx) => tx,
        })
        await rig.query('insert into redrive.event_handled values ($1, $2, $3)', [
          rig.queue,
          'k',
          'f',
        ])
        const answer: InboxResult = await inbox.handle(entryOf(rig), async () => undefined)
        expect(answer).toBe('handled')
      }),
    )
  })

  describe.concurrent('deleting old keys', () => {
    const old = (rig: Rig, consumer: string, key: string, days: number) =>
      rig.query(
        `insert into redrive.event_handled values ($1, $2, 'f', now() - $3 * interval '1 day')`,
        [consumer, key, days],
      )

    it(
      'deletes expired keys of this consumer',
      on(async (rig) => {
        const other = `${rig.queue}-other`
        await old(rig, rig.queue, 'old', 31)
        await old(rig, rig.queue, 'young', 29)
        await old(rig, other, 'old', 31)
        const inbox = postgresInbox({ pool })
        await inbox.handle(entryOf(rig, 'f', 'new'), () => Promise.resolve())
        await until('the old one is gone', async () => (await keysOf(rig)).length === 2)
        expect(await keysOf(rig)).toEqual(['new', 'young'])
        const [left] = await rig.query(
          'select key from redrive.event_handled where consumer = $1',
          [other],
        )
        expect(left).toEqual({ key: 'old' })
        const forget = `select redrive.inbox_forget($1, '30 days')::integer as count`
        expect(await rig.query(forget, [other])).toEqual([{ count: 1 }])
        expect(await rig.query(forget, [other])).toEqual([{ count: 0 }])
      }),
    )

    it(
      'continues until none is left, beyond the limit of one step',
      on(async (rig) => {
        await rig.query(
          `insert into redrive.event_handled
           select $1, 'old-' || n, 'f', now() - interval '31 days' from generate_series(1, 25000) n`,
          [rig.queue],
        )
        const inbox = postgresInbox({ pool })
        await inbox.handle(entryOf(rig, 'f', 'new'), () => Promise.resolve())
        await until('the old ones are gone', async () => (await keysOf(rig)).length === 1)
        expect(await keysOf(rig)).toEqual(['new'])
      }),
    )

    it(
      'does not wait for a locked key',
      on(async (rig) => {
        await old(rig, rig.queue, 'held', 31)
        await old(rig, rig.queue, 'free', 31)
        const holder = await rig.connect()
        await holder.query('begin')
        await holder.query(
          `select from redrive.event_handled where consumer = $1 and key = 'held' for update`,
          [rig.queue],
        )
        const forgetting = rig.query(`select redrive.inbox_forget($1, '30 days')`, [rig.queue])
        await within('the others', forgetting, { timeout: 3_000 })
        expect(await keysOf(rig)).toEqual(['held'])
      }),
    )

    it(
      'does not fail a handler when it fails, and is not retried for each delivery',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        const forgotten: string[] = []
        const failing = hooked(own, {
          before({ text }) {
            if (!text.includes('inbox_forget')) return
            forgotten.push(text)
            throw broken()
          },
        })
        const inbox = postgresInbox({ pool: failing })
        for (const key of ['a', 'b', 'c']) {
          expect(await inbox.handle(entryOf(rig, 'f', key), () => Promise.resolve())).toBe(
            'handled',
          )
        }
        expect(forgotten).toHaveLength(1)
      }),
    )

    it(
      'rejects a retention of 0, or below that of dead letters, at the start',
      on(async (rig) => {
        const inbox = postgresInbox({ pool, retention: '1d' })
        const consuming = rig.consume<PoolClient>(() => undefined, { inbox })
        const error = await refusal(consuming)
        expect(isRedriveError(error, 'POLICY_INVALID')).toBe(true)
        expect(error.message).toContain('a replay could take effect twice')
        expect(() => postgresInbox({ pool, retention: 0 })).toThrow('- retention: ')
      }),
    )
  })
}

const FORGET_ALL = 'delete from redrive.event_handled where consumer = $1'
