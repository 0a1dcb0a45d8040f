import { randomUUID } from 'node:crypto'
import type { OutboundEvent } from '@redrive/runtime'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { postgresSink } from '../src/index.ts'
import { emptyDatabase } from './database.ts'
import { onRig, type Rig, refusal } from './rig.ts'

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const never = new AbortController().signal

const event = (given: Partial<OutboundEvent> = {}): OutboundEvent => ({
  id: randomUUID(),
  key: 'order-42',
  type: 'order.placed',
  lane: 'customer-7',
  at: AT,
  bytes: Uint8Array.from({ length: 256 }, (_, value) => value),
  contentType: 'application/x-all',
  headers: { severity: 'error' },
  ...given,
})

interface Row {
  readonly id: string
  readonly key: string
}

const rowsOf = (rig: Rig) =>
  rig.query<Row>('select id::text, key from redrive.outbox where queue = $1 order by position', [
    rig.queue,
  ])

/** Events that are published through an outbox. */
export function sinks(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a sink', () => {
    it(
      'resolves when the events are committed, and a consumer receives them unchanged',
      on(async (rig) => {
        const sink = postgresSink({ pool, queue: rig.queue })
        await sink.send([event(), event({ lane: undefined, key: 'two' })], { signal: never })
        const { hand } = await rig.start()
        await hand.nth(2)
        const [first, second] = ['order-42', 'two'].map((key) =>
          hand.deliveries.find((one) => one.key === key),
        )
        const { id: _, at: _at, bytes, ...rest } = event()
        expect(first).toMatchObject(rest)
        expect(Buffer.from(first?.bytes ?? []).equals(bytes)).toBe(true)
        expect(second?.lane).toBeUndefined()
      }),
    )

    it(
      'stores an event once that is sent twice, alone or in a batch, in order',
      on(async (rig) => {
        const sink = postgresSink({ pool, queue: rig.queue })
        const [a, b, c] = ['a', 'b', 'c'].map((key) =>
          event({ key, id: `not a UUID ${rig.queue} ${key}` }),
        )
        if (a === undefined || b === undefined || c === undefined) throw new Error('no events')
        await sink.send([a], { signal: never })
        await sink.send([a, b], { signal: never })
        await Promise.all([
          sink.send([b, c], { signal: never }),
          sink.send([c, a], { signal: never }),
        ])
        expect((await rowsOf(rig)).map(({ key }) => key)).toEqual(['a', 'b', 'c'])
      }),
    )

    it(
      'keeps an id of version 7, and derives one with the time of the event from any other',
      on(async (rig) => {
        const sink = postgresSink({ pool, queue: rig.queue })
        const own = `0190a5f0-0000-7000-8000-${randomUUID().slice(-12)}`
        const others = [randomUUID(), 'order 1', 'order 2']
        await sink.send(
          [own, ...others].map((id) => event({ id })),
          { signal: never },
        )
        const [first, ...made] = (await rowsOf(rig)).map(({ id }) => id)
        expect(first).toBe(own)
        expect(new Set(made).size).toBe(3)
        for (const id of made) {
          expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
          expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(AT)
        }
      }),
    )

    it(
      'rejects with the reason of the signal while the database does not answer',
      on(async (rig) => {
        const sink = postgresSink({ pool, queue: rig.queue })
        const aborting = new AbortController()
        const client = await pool.connect()
        try {
          const one = event()
          await client.query('begin')
          // The same id in an open transaction: the sink must wait for it.
          await client.query(`insert into redrive.outbox (id, queue, payload) select $1, $2, ''`, [
            `0190a5f0-0000-7000-8000-${one.id.slice(-12)}`,
            rig.queue,
          ])
          const sending = sink.send(
            [{ ...one, id: `0190a5f0-0000-7000-8000-${one.id.slice(-12)}` }],
            aborting,
          )
          aborting.abort(new Error('time is up'))
          expect((await refusal(sending)).message).toBe('time is up')
          expect((await refusal(sink.send([event()], aborting))).message).toBe('time is up')
        } finally {
          await client.query('rollback')
          client.release()
        }
      }),
    )

    it(
      'is healthy when events can be added, and otherwise rejects with instructions',
      on(async (rig) => {
        await expect(
          postgresSink({ pool, queue: rig.queue }).healthCheck({ signal: never }),
        ).resolves.toBeUndefined()
        const empty = await emptyDatabase(rig, url)
        const homeless = postgresSink({ pool: empty.pool, queue: rig.queue })
        expect((await refusal(homeless.healthCheck({ signal: never }))).message).toContain(
          'migrate',
        )
        expect((await refusal(homeless.send([event()], { signal: never }))).message).toContain(
          'migrate',
        )
        expect(await rowsOf(rig)).toEqual([])
        await homeless.close()
      }),
    )
  })
}
