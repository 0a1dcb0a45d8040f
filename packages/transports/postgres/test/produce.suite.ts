import { isRedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { type OutboxEvent, outbox } from '../src/index.ts'
import { CLIENTS, type Client } from './clients.ts'
import { onRig, type Rig, refusal } from './rig.ts'

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, value) => value)
/** Text that a driver could misread: parameter placeholders, quotes, escapes, characters outside the BMP. */
const STRANGE = `? $1 :name '"\\ \n\t ${'\u{1f680}'} ṩ \u202e é`

/** Returns the events of this queue, of all transactions. */
async function bodiesOf(rig: Rig): Promise<readonly string[]> {
  const rows = await rig.query<{ payload: Buffer }>(
    'select payload from redrive.outbox where queue = $1 order by position',
    [rig.queue],
  )
  return rows.map(({ payload }) => payload.toString())
}

/** Defines the tests of adding in transactions of these clients. */
export function producingWith(clients: typeof CLIENTS, url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)
  const onClient = (
    open: (url: string) => Client,
    test: (rig: Rig, client: Client) => Promise<void>,
  ) =>
    on(async (rig) => {
      const client = open(url)
      rig.atEnd(() => client.end())
      await test(rig, client)
    })

  describe.concurrent.each(clients)('adding in a transaction of %s', (_, open) => {
    it(
      'is visible after the commit, and not before',
      onClient(open, async (rig, client) => {
        await client.transaction(async (tx) => {
          await rig.outbox.add(tx, { body: 'one' })
          await rig.outbox.addMany(tx, [{ body: 'two' }, { body: 'three' }])
          expect(await bodiesOf(rig)).toEqual([])
        })
        expect(await bodiesOf(rig)).toEqual(['"one"', '"two"', '"three"'])
      }),
    )

    it(
      'is undone by a rollback',
      onClient(open, async (rig, client) => {
        const failing = client.transaction(async (tx) => {
          await rig.outbox.add(tx, { body: 'one' })
          await rig.outbox.addMany(tx, [{ body: 'two' }, { body: 'three' }])
          throw new Error('on purpose')
        })
        expect((await refusal(failing)).message).toBe('on purpose')
        expect(await bodiesOf(rig)).toEqual([])
      }),
    )

    it(
      'stores bytes, headers, lane, key, type and content type unchanged',
      onClient(open, async (rig, client) => {
        const whole = {
          body: EVERY_BYTE,
          type: `type ${STRANGE}`,
          key: `key ${STRANGE}`,
          lane: `lane ${STRANGE}`,
          contentType: 'application/x-all',
          headers: { [`name ${STRANGE}`]: STRANGE, '': 'no name', empty: '' },
        }
        const ids: string[] = []
        await client.transaction(async (tx) => {
          ids.push(await rig.outbox.add(tx, whole))
          ids.push(
            ...(await rig.outbox.addMany(tx, [
              { body: new Uint8Array() },
              { body: { text: STRANGE, none: null } },
            ])),
          )
        })
        const { hand } = await rig.start()
        await hand.nth(3)
        const [first, empty, json] = ids.map((id) => hand.deliveries.find((one) => one.id === id))
        const { body, ...rest } = whole
        expect(first).toMatchObject(rest)
        expect(Buffer.from(first?.bytes ?? []).equals(body)).toBe(true)
        expect(empty).toMatchObject({ key: ids[1], contentType: 'application/octet-stream' })
        expect([empty?.bytes.length, empty?.lane, empty?.type]).toEqual([0, undefined, undefined])
        expect(json).toMatchObject({ contentType: 'application/json', headers: {} })
        expect(JSON.parse(Buffer.from(json?.bytes ?? []).toString())).toEqual({
          text: STRANGE,
          none: null,
        })
      }),
    )
  })
}

export function producing(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)
  producingWith(CLIENTS, url, pool)

  describe.concurrent('an event added with SQL', () => {
    it(
      'arrives like an event that a producer added',
      on(async (rig) => {
        const { hand } = await rig.start()
        const [added] = await rig.query<{ id: string }>(
          `select redrive.outbox_add($1, '{"n": 1}', type => 'order.placed', key => 'k-1', lane => 'l-1',
             headers => '{"tenant": "x"}') as id`,
          [rig.queue],
        )
        const delivery = await hand.nth(1)
        expect(delivery).toMatchObject({
          id: added?.id,
          type: 'order.placed',
          key: 'k-1',
          lane: 'l-1',
          contentType: 'application/json',
          headers: { tenant: 'x' },
        })
        expect(JSON.parse(Buffer.from(delivery.bytes).toString())).toEqual({ n: 1 })
      }),
    )

    it(
      'waits for its delay, and is undone by a rollback',
      on(async (rig) => {
        const client = await rig.connect()
        const add = (text: string) =>
          client.query(`select redrive.outbox_add($1, ${text})`, [rig.queue])
        await client.query('begin')
        await add(`'"undone"'`)
        await client.query('rollback')
        await add(`'"later"', delay => '2 hours'`)
        expect(await bodiesOf(rig)).toEqual(['"later"'])
        const [row] = await rig.query<{ delay: number }>(
          `select extract(epoch from due_at - created_at)::integer as delay from redrive.outbox where queue = $1`,
          [rig.queue],
        )
        expect(row?.delay).toBe(7_200)
      }),
    )
  })

  describe.concurrent('an added event', () => {
    it(
      'contains only its part of a larger buffer',
      on(async (rig) => {
        await rig.add({ body: EVERY_BYTE.subarray(100, 103) })
        const { hand } = await rig.start()
        expect([...(await hand.nth(1)).bytes]).toEqual([100, 101, 102])
      }),
    )

    it(
      'gets its id and position in order, with ten thousand in one statement',
      on(async (rig) => {
        const ids = await rig.addMany(10_000)
        const rows = await rig.query<{ id: string; body: string }>(
          `select id, convert_from(payload, 'UTF8') as body from redrive.outbox where queue = $1 order by position`,
          [rig.queue],
        )
        expect(new Set(ids).size).toBe(10_000)
        expect(rows.map(({ id }) => id)).toEqual(ids)
        expect(rows.map(({ body }) => Number(body))).toEqual(ids.map((_, index) => index))
      }),
    )

    it(
      'has an id of version 7 with its time',
      on(async (rig) => {
        const [before] = await rig.query<{ at: string }>(
          `select extract(epoch from now()) * 1000 as at`,
        )
        const id = await rig.add()
        const [after] = await rig.query<{ at: string }>(
          `select extract(epoch from now()) * 1000 as at`,
        )
        expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
        const at = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
        expect(at).toBeGreaterThanOrEqual(Number(before?.at) - 1)
        expect(at).toBeLessThanOrEqual(Number(after?.at) + 1)
      }),
    )

    it(
      'with a delay is due after it, and is not delivered before',
      on(async (rig) => {
        const { hand } = await rig.start()
        const [, late] = await rig.addMany(2, (index) => ({ delay: index === 0 ? '2h' : 600 }))
        const startedAt = performance.now()
        const delivery = await hand.nth(1)
        expect(performance.now() - startedAt).toBeGreaterThan(550)
        expect(delivery.id).toBe(late)
        const [row] = await rig.query<{ delay: string }>(
          `select extract(epoch from due_at - created_at)::text as delay from redrive.outbox
           where queue = $1 and status = 'pending'`,
          [rig.queue],
        )
        expect(Number(row?.delay)).toBeCloseTo(7_200, 1)
      }),
    )

    it(
      'with an empty lane has no lane',
      on(async (rig) => {
        const { hand } = await rig.start({ order: 'lane' })
        await rig.addMany(2, () => ({ lane: '' }))
        await hand.nth(2)
        expect(hand.deliveries.map(({ lane }) => lane)).toEqual([undefined, undefined])
      }),
    )

    it(
      'is sent in one statement; an empty list sends none',
      on(async (rig) => {
        const silent = { query: () => Promise.reject(new Error('asked')) }
        expect(await rig.outbox.addMany(silent, [])).toEqual([])
      }),
    )

    it(
      'keeps JSON-escaped text that PostgreSQL could not store as text',
      on(async (rig) => {
        const body = `NUL \0 and half a pair \ud800`
        await rig.add({ body })
        const { hand } = await rig.start()
        expect(JSON.parse(Buffer.from((await hand.nth(1)).bytes).toString())).toBe(body)
      }),
    )
  })

  describe.concurrent('an event that cannot be stored is rejected without a statement', () => {
    const fields: readonly (readonly [string, (bad: string) => Partial<OutboxEvent>])[] = [
      ['type', (bad) => ({ type: bad })],
      ['key', (bad) => ({ key: bad })],
      ['lane', (bad) => ({ lane: bad })],
      ['contentType', (bad) => ({ contentType: bad })],
      ['tenant', (bad) => ({ headers: { tenant: bad } })],
      // A header with the same name must not hide the problem.
      ['type', (bad) => ({ type: bad, headers: { type: 'fine' } })],
    ]
    const unstorable = fields.flatMap(([name, event]) => [
      [name, 'NUL', event('a\0b')] as const,
      [name, 'half a pair', event('a\ud800b')] as const,
      [name, 'the other half', event('\udc00')] as const,
    ])
    it.each(unstorable)('%s with %s', async (name, _, event) => {
      await on(async (rig) => {
        const asked: string[] = []
        const tx = { query: (text: string) => Promise.reject(new Error(String(asked.push(text)))) }
        const error = await refusal(rig.outbox.add(tx, { body: 1, ...event }))
        expect(isRedriveError(error, 'POLICY_INVALID')).toBe(true)
        expect(error.message.split(':')[0]).toBe(name)
        expect(asked).toEqual([])
      })()
    })

    it(
      'for the name of a header, while a complete surrogate pair is accepted',
      on(async (rig) => {
        expect((await refusal(rig.add({ headers: { 'a\0': 'b' } }))).message).toMatch(/^a\0: /)
        await rig.add({ key: '\u{1f680}', headers: { '\u{1f680}': '\u{1f680}' } })
        const { hand } = await rig.start()
        expect(await hand.nth(1)).toMatchObject({ key: '\u{1f680}' })
      }),
    )

    it(
      'for a body that is not JSON, an invalid delay and an empty queue name',
      on(async (rig) => {
        expect((await refusal(rig.add({ body: undefined }))).message).toMatch(/^body: /)
        expect((await refusal(rig.add({ delay: 'soon' as '1s' }))).message).toMatch(/^delay: /)
        expect(() => outbox({ queue: '' })).toThrow('- queue: ')
        expect(await bodiesOf(rig)).toEqual([])
      }),
    )

    it(
      'with its whole batch',
      on(async (rig) => {
        const error = await refusal(rig.addMany(3, (index) => (index === 2 ? { key: '\0' } : {})))
        expect(error.message).toMatch(/^key: /)
        expect(await bodiesOf(rig)).toEqual([])
      }),
    )
  })
}
