import { isRedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { type OutboxEvent, outbox } from '../src/index.ts'
import { CLIENTS, type Client } from './clients.ts'
import { onRig, type Rig, refusal } from './rig.ts'

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, value) => value)
/** Whatever a driver might take for its own: places of parameters, quotes, escapes, other planes. */
const STRANGE = `? $1 :name '"\\ \n\t ${'\u{1f680}'} ṩ \u202e é`

/** What has been added to this queue, by anyone's transaction. */
async function bodiesOf(rig: Rig): Promise<readonly string[]> {
  const rows = await rig.query<{ payload: Buffer }>(
    'select payload from redrive.outbox where queue = $1 order by position',
    [rig.queue],
  )
  return rows.map(({ payload }) => payload.toString())
}

export function producing(url: string, pool: Pool): void {
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

  describe.concurrent.each(CLIENTS)('adding in a transaction of %s', (_, open) => {
    it(
      'is seen when it commits, and not before',
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
      'is undone with everything else when it rolls back',
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
      'keeps bytes, headers, lane, key, type and content type as they were given',
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

  describe.concurrent('what is added', () => {
    it(
      'part of a larger buffer is only that part',
      on(async (rig) => {
        await rig.add({ body: EVERY_BYTE.subarray(100, 103) })
        const { hand } = await rig.start()
        expect([...(await hand.nth(1)).bytes]).toEqual([100, 101, 102])
      }),
    )

    it(
      'ten thousand in one statement get their ids in the order of the events, and their places too',
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
      'ids say when the event was added, in the form that version 7 has',
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
      'with a delay is due that long after it was added, and not handed out before',
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
      'an empty lane is no lane: its events do not wait for each other',
      on(async (rig) => {
        const { hand } = await rig.start({ order: 'lane' })
        await rig.addMany(2, () => ({ lane: '' }))
        await hand.nth(2)
        expect(hand.deliveries.map(({ lane }) => lane)).toEqual([undefined, undefined])
      }),
    )

    it(
      'nothing at all asks the database nothing',
      on(async (rig) => {
        const silent = { query: () => Promise.reject(new Error('asked')) }
        expect(await rig.outbox.addMany(silent, [])).toEqual([])
      }),
    )

    it(
      'text that JSON escapes is kept also where PostgreSQL could not store it as text',
      on(async (rig) => {
        const body = `NUL \0 and half a pair \ud800`
        await rig.add({ body })
        const { hand } = await rig.start()
        expect(JSON.parse(Buffer.from((await hand.nth(1)).bytes).toString())).toBe(body)
      }),
    )
  })

  describe.concurrent('what cannot be stored is refused before the database hears of it', () => {
    const fields: readonly (readonly [string, (bad: string) => Partial<OutboxEvent>])[] = [
      ['type', (bad) => ({ type: bad })],
      ['key', (bad) => ({ key: bad })],
      ['lane', (bad) => ({ lane: bad })],
      ['contentType', (bad) => ({ contentType: bad })],
      ['tenant', (bad) => ({ headers: { tenant: bad } })],
      // A header of that name must not hide it.
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
      'the name of a header too, and both halves of a pair together are fine',
      on(async (rig) => {
        expect((await refusal(rig.add({ headers: { 'a\0': 'b' } }))).message).toMatch(/^a\0: /)
        await rig.add({ key: '\u{1f680}', headers: { '\u{1f680}': '\u{1f680}' } })
        const { hand } = await rig.start()
        expect(await hand.nth(1)).toMatchObject({ key: '\u{1f680}' })
      }),
    )

    it(
      'a body that JSON cannot express, a delay that is none and a queue without a name',
      on(async (rig) => {
        expect((await refusal(rig.add({ body: undefined }))).message).toMatch(/^body: /)
        expect((await refusal(rig.add({ delay: 'soon' as '1s' }))).message).toMatch(/^delay: /)
        expect(() => outbox({ queue: '' })).toThrow(/^queue: /)
        expect(await bodiesOf(rig)).toEqual([])
      }),
    )

    it(
      'all of a batch when one of it is refused',
      on(async (rig) => {
        const error = await refusal(rig.addMany(3, (index) => (index === 2 ? { key: '\0' } : {})))
        expect(error.message).toMatch(/^key: /)
        expect(await bodiesOf(rig)).toEqual([])
      }),
    )
  })
}
