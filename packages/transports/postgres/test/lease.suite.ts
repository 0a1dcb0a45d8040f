import { isUnfinished } from '@redrive/runtime/internal'
import type { Pool } from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { PostgresDelivery } from '../src/index.ts'
import { turn } from './database.ts'
import {
  broken,
  DECISIONS,
  deadLetter,
  floorOf,
  giveBack,
  HOUR_MS,
  type Hooks,
  isEnacting,
  isKeep,
  isSweep,
  isTurn,
  onRig,
  type Rig,
  retryIn,
  settle,
  until,
} from './rig.ts'

const LOST = { kind: 'lost' }
const DONE = { kind: 'done' }

/** Two consumers, and a row that the second claimed after the lease of the first had expired. */
async function overtaken(rig: Rig) {
  const first = await rig.start({ limit: 1 })
  const id = await rig.add()
  const delivery = await first.hand.nth(1)
  await rig.expire(id)
  const second = await rig.start({ limit: 1 })
  return { id, first, delivery, second, taken: await second.hand.nth(1) }
}

/** Lets another consumer claim the row exactly when its lease ends: a heartbeat in between would renew it. */
async function takeOver(rig: Rig, id: string): Promise<void> {
  const other = await rig.connect()
  await other.query('begin')
  await other.query(
    `update redrive.outbox set lease_until = now() - interval '1 millisecond' where id = $1`,
    [id],
  )
  const taken = await turn(other, rig.queue, { most: 1 })
  expect(taken.map((claim) => claim.id)).toEqual([id])
  await other.query('commit')
}

export function leases(pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a consumer with an expired lease', () => {
    it.each(DECISIONS)(
      'gets lost for its %s, and does not affect the new owner',
      async (_, decision) => {
        await on(async (rig) => {
          const { id, first, delivery, second, taken } = await overtaken(rig)
          const before = await rig.row(id)
          expect(await first.transport.enact(delivery, decision)).toMatchObject(LOST)
          expect(await rig.row(id)).toEqual(before)
          expect(await second.transport.enact(taken, settle)).toMatchObject(DONE)
          expect(await rig.row(id)).toMatchObject({
            status: 'delivered',
            attempts: 0,
            delivered_at: expect.any(Date) as unknown,
          })
        })()
      },
    )

    it(
      'that claims its row again first reports the earlier delivery as lost',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ limit: 2 })
        const id = await rig.add()
        const earlier = await hand.nth(1)
        await rig.expire(id)
        const again = await hand.nth(2)
        expect(hand.lostOnes).toEqual([earlier])
        expect(await transport.enact(earlier, settle)).toMatchObject(LOST)
        expect(await transport.enact(again, settle)).toMatchObject(DONE)
      }),
    )

    it(
      'gets lost even if the new owner has finished, or the event was replayed',
      on(async (rig) => {
        const { id, first, delivery, second, taken } = await overtaken(rig)
        await second.transport.enact(taken, deadLetter())
        await second.transport.pause()
        await first.transport.pause()
        await rig.query('select redrive.outbox_replay($1, 1, $2)', [id, 'me'])
        const before = await rig.row(id)
        expect(await first.transport.enact(delivery, settle)).toMatchObject(LOST)
        expect(await rig.row(id)).toEqual(before)
      }),
    )

    it(
      'still settles its other deliveries',
      on(async (rig) => {
        const first = await rig.start({ limit: 10 })
        const [stolen] = await rig.addMany(10)
        await first.hand.nth(10)
        await rig.expire(stolen as string)
        const second = await rig.start({ limit: 1 })
        await second.hand.nth(1)
        const answers = await Promise.all(
          first.hand.deliveries.map(async (one) => ({
            isStolen: one.id === stolen,
            kind: (await first.transport.enact(one, settle)).kind,
          })),
        )
        for (const { isStolen, kind } of answers) expect(kind).toBe(isStolen ? 'lost' : 'done')
        expect(await rig.count('delivered')).toBe(9)
      }),
    )

    it(
      'learns it from its heartbeat, and does not renew the lease of another consumer',
      on(async (rig) => {
        let enactments = 0
        const { transport, hand } = await rig.start({
          lease: '1s',
          limit: 1,
          hooks: { before: (question) => void (enactments += isEnacting(question) ? 1 : 0) },
        })
        const id = await rig.add()
        const delivery = await hand.nth(1)
        await takeOver(rig, id)
        const before = await rig.row(id)
        await until('it is reported', () => hand.lostOnes.length === 1)
        expect(hand.lostOnes).toEqual([delivery])
        expect(await transport.enact(delivery, settle)).toMatchObject(LOST)
        expect(enactments).toBe(0)
        expect(await rig.row(id)).toEqual(before)
      }),
    )

    it(
      'reports only the stale delivery when the same consumer claims the event again',
      on(async (rig) => {
        let keeps = 0
        const hooks: Hooks = { after: (question) => void (keeps += isKeep(question) ? 1 : 0) }
        const { transport, hand } = await rig.start({ lease: '6s', limit: 2, hooks })
        const id = await rig.add()
        const stale = await hand.nth(1)
        // Right after a heartbeat: the next one then contains both deliveries.
        await until('it is renewed', () => keeps === 1)
        await pool.query(
          `update redrive.outbox set lease_until = now(), lease_token = nextval('redrive.lease_token') where id = $1`,
          [id],
        )
        const current = await hand.nth(2)
        await until('the next heartbeat has been answered', () => hand.lostOnes.length > 0)
        expect(hand.lostOnes).toEqual([stale])
        expect(await transport.enact(current, settle)).toMatchObject(DONE)
        expect(await rig.count('delivered')).toBe(1)
      }),
    )
  })

  describe.concurrent('without a response of the database', () => {
    const FAULTS: readonly (readonly [name: string, fail: (restored: Promise<void>) => unknown])[] =
      [
        ['refuses connections', () => Promise.reject(broken())],
        ['does not answer', (restored) => restored],
      ]

    it.each(FAULTS)('a lease ends here not later than there: it %s', async (_, fail) => {
      await on(async (rig) => {
        const restored = Promise.withResolvers<void>()
        let isDown = false
        let queries = 0
        const hooks: Hooks = {
          async before() {
            queries += 1
            if (isDown) await fail(restored.promise)
          },
        }
        rig.atEnd(async () => restored.resolve())
        const { transport, hand } = await rig.start({ lease: '2s', limit: 2, hooks })
        const id = await rig.add()
        const delivery = await hand.nth(1)
        isDown = true
        await until('it is reported', () => hand.lostOnes.length > 0, { timeout: 5_000 })
        const [row] = await rig.query<{ left: string }>(
          'select extract(epoch from lease_until - clock_timestamp())::text as left from redrive.outbox where id = $1',
          [id],
        )
        // Not later, except for the wait of the test itself.
        expect(Number(row?.left)).toBeGreaterThan(-1)
        expect(hand.lostOnes).toEqual([delivery])
        const before = queries
        expect(await transport.enact(delivery, settle)).toMatchObject(LOST)
        expect(queries).toBe(before)
        isDown = false
        restored.resolve()
        expect(await hand.nth(2)).toMatchObject({ id, deliveryCount: 2 })
      })()
    })

    it(
      'a lease counts from its claim, also if the answer arrives late',
      on(async (rig) => {
        const arrived = Promise.withResolvers<void>()
        let isHeld = false
        const hooks: Hooks = {
          async after(question, rows) {
            if (isHeld || !isTurn(question) || rows.length === 0) return
            isHeld = true
            await arrived.promise
          },
        }
        rig.atEnd(async () => arrived.resolve())
        const { hand } = await rig.start({ lease: '2s', limit: 1, hooks })
        const id = await rig.add()
        const hasEnded = async () => {
          const until = (await rig.row(id))?.lease_until
          return until !== null && Number(until) < Date.now()
        }
        await until('the lease has ended', hasEnded)
        arrived.resolve()
        const delivery = await hand.nth(1)
        await until('it is reported', () => hand.lostOnes.length > 0, { timeout: 1_000 })
        expect(hand.lostOnes).toEqual([delivery])
      }),
    )

    it.each(FAULTS)(
      'a delivery whose handler has ended is not reported, and is handed off later: it %s',
      async (_, fail) => {
        await on(async (rig) => {
          const restored = Promise.withResolvers<void>()
          let isDown = false
          let refused = 0
          const hooks: Hooks = {
            async before() {
              if (!isDown) return
              refused += 1
              await fail(restored.promise)
            },
          }
          rig.atEnd(async () => restored.resolve())
          const { transport, hand } = await rig.start({ lease: '2s', limit: 2, hooks })
          await rig.addMany(2)
          await hand.nth(2)
          // No room to claim an event again before it is handed off.
          transport.limit(1)
          const [ended, running] = hand.deliveries as [PostgresDelivery, PostgresDelivery]
          isDown = true
          // From here on, a hand-off that needs an answer waits for this one.
          await until('a query has no answer', () => refused > 0)
          const ending = transport.enact(ended, settle)
          await until('the running one is reported', () => hand.lostOnes.length > 0)
          expect(hand.lostOnes).toEqual([running])
          isDown = false
          restored.resolve()
          const first = await ending
          const last = isUnfinished(first) ? await transport.enact(ended, settle) : first
          expect(last).toMatchObject(DONE)
        })()
      },
    )
  })

  describe.concurrent('a lease', () => {
    it(
      'is renewed while a handler runs three times as long, and the event runs once',
      on(async (rig) => {
        let keeps = 0
        let runs = 0
        const hooks: Hooks = { after: (question) => void (keeps += isKeep(question) ? 1 : 0) }
        const transport = rig.transport({ lease: '3s', hooks })
        const id = await rig.add()
        await rig.consume(
          async () => {
            runs += 1
            // Three heartbeats per lease.
            await until('nine heartbeats', () => keeps >= 9, { timeout: 20_000 })
          },
          { transport },
        )
        await until('it runs', () => runs === 1)
        const others = await rig.start({ lease: '3s' })
        await rig.becomes(id, 'delivered', { timeout: 25_000 })
        expect(runs).toBe(1)
        expect(others.hand.deliveries).toEqual([])
        expect(await rig.row(id)).toMatchObject({ lapses: 0, attempts: 0 })
      }),
      60_000,
    )

    it(
      'that expired counts as a delivery until the next failure',
      on(async (rig) => {
        const id = await rig.add()
        const first = await rig.start({ limit: 1 })
        await first.hand.nth(1)
        await first.transport.pause()
        await rig.expire(id)
        const second = await rig.start({ limit: 1 })
        expect((await second.hand.nth(1)).deliveryCount).toBe(2)
        await second.transport.pause()
        await rig.expire(id)
        const { transport, hand } = await rig.start({ limit: 1 })
        const delivery = await hand.nth(1)
        expect(delivery).toMatchObject({ deliveryCount: 3, cycle: { attempts: 0 } })
        await transport.enact(delivery, retryIn(0))
        expect(await hand.nth(2)).toMatchObject({ deliveryCount: 1, cycle: { attempts: 1 } })
      }),
    )

    it(
      'that is returned does not count, keeps its position and is free immediately',
      on(async (rig) => {
        const id = await rig.add()
        const before = await rig.row(id)
        const { transport, hand } = await rig.start({ limit: 1 })
        const delivery = await hand.nth(1)
        await transport.pause()
        expect(await transport.enact(delivery, giveBack)).toMatchObject({ destination: 'returned' })
        const { lease_token: _, ...after } = await rig.row(id)
        const { lease_token: __, ...unchanged } = before
        expect(after).toEqual(unchanged)
        transport.resume()
        expect(await hand.nth(2)).toMatchObject({ id, deliveryCount: 1, cycle: { attempts: 0 } })
      }),
    )

    it(
      'that is returned after it expired keeps the count',
      on(async (rig) => {
        const { id, second, taken } = await overtaken(rig)
        await second.transport.pause()
        await second.transport.enact(taken, giveBack)
        expect(await rig.row(id)).toMatchObject({ status: 'pending', lapses: 1, attempts: 0 })
      }),
    )

    it(
      'ends with close(): other consumers get the events immediately, uncounted',
      on(async (rig) => {
        const ids = await rig.addMany(5)
        const first = await rig.start()
        await first.hand.nth(5)
        await first.transport.close()
        const rows = await rig.rows()
        expect(rows.map(({ status, lease_until }) => [status, lease_until])).toEqual(
          ids.map(() => ['pending', null]),
        )
        const second = await rig.start()
        await second.hand.nth(5, { timeout: 2_000 })
        expect(second.hand.deliveries.map(({ deliveryCount }) => deliveryCount)).toEqual(
          ids.map(() => 1),
        )
      }),
    )

    it(
      'expires and counts when the answer to its claim was lost',
      on(async (rig) => {
        let isDropping = true
        const { hand } = await rig.start({
          lease: '1s',
          hooks: {
            after(question, rows) {
              if (!isDropping || !isTurn(question) || rows.length === 0) return
              isDropping = false
              throw broken()
            },
          },
        })
        const id = await rig.add()
        const startedAt = performance.now()
        expect(await hand.nth(1)).toMatchObject({ id, deliveryCount: 2 })
        expect(performance.now() - startedAt).toBeGreaterThan(900)
      }),
    )

    it(
      'is renewed for other rows while one row is locked',
      on(async (rig) => {
        let keeps = 0
        const hooks: Hooks = { after: (question) => void (keeps += isKeep(question) ? 1 : 0) }
        const { hand } = await rig.start({ lease: '3s', hooks })
        const [locked, free] = (await rig.addMany(2)) as [string, string]
        await hand.nth(2)
        const before = [await rig.row(locked), await rig.row(free)]
        const blocker = await rig.connect()
        await blocker.query('begin')
        await blocker.query('select from redrive.outbox where id = $1 for update', [locked])
        await until('a heartbeat', () => keeps > 0, { timeout: 2_500 })
        const after = [await rig.row(locked), await rig.row(free)]
        await blocker.query('commit')
        expect(after[0]?.lease_until).toEqual(before[0]?.lease_until)
        expect(Number(after[1]?.lease_until)).toBeGreaterThan(Number(before[1]?.lease_until))
        expect(hand.lostOnes).toEqual([])
      }),
    )

    it(
      'is held for no more rows than the limit',
      on(async (rig) => {
        await rig.addMany(300)
        const inHand: PostgresDelivery[] = []
        let most = 0
        const transport = rig.transport()
        await transport.open()
        transport.limit(20)
        transport.receive({
          deliver: (delivery) => void (most = Math.max(most, inHand.push(delivery))),
          lost: () => undefined,
        })
        // Half of them at a time, after all rows have arrived: only settled rows make room.
        await until('all but what stays', async () => {
          if (inHand.length < 20) return (await rig.count('delivered')) >= 280
          for (const one of inHand.splice(0, 10)) void transport.enact(one, settle)
          return false
        })
        expect(most).toBe(20)
      }),
    )

    it(
      'belongs to one consumer: five consumers claim each of a thousand events once',
      on(async (rig) => {
        const ids = await rig.addMany(1_000)
        const all = await Promise.all(Array.from({ length: 5 }, () => rig.start({ limit: 1_000 })))
        await until(
          'all taken',
          () => all.reduce((sum, { hand }) => sum + hand.deliveries.length, 0) >= 1_000,
        )
        const taken = all.flatMap(({ hand }) => hand.ids)
        expect(taken.length).toBe(1_000)
        expect(new Set(taken)).toEqual(new Set(ids))
        expect(all.every(({ hand }) => hand.lostOnes.length === 0)).toBe(true)
      }),
    )

    it.each([
      ['of a queue without order', 'none', undefined],
      ['without a lane, where order is kept', 'lane', undefined],
      ['at the head of its lane', 'lane', 'l'],
    ] as const)('does not wait for a locked row %s', async (_, order, lane) => {
      await on(async (rig) => {
        const [locked, free] = (await rig.addMany(2, (index) =>
          lane === undefined ? {} : { lane: `${lane}-${index}` },
        )) as [string, string]
        const blocker = await rig.connect()
        await blocker.query('begin')
        await blocker.query('select from redrive.outbox where id = $1 for update', [locked])
        const { hand } = await rig.start({ order })
        expect((await hand.nth(1, { timeout: 3_000 })).id).toBe(free)
        await blocker.query('commit')
        expect((await hand.nth(2, { timeout: 3_000 })).id).toBe(locked)
      })()
    })
  })

  // One after the other: all tests share the clock.
  describe('a client whose clock is wrong', () => {
    afterEach(() => void vi.useRealTimers())

    it.each([
      ['an hour late', -HOUR_MS],
      ['an hour early', HOUR_MS],
    ])('by %s: times, leases and order are the database’s', async (_, shiftMs) => {
      await on(async (rig) => {
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + shiftMs })
        const floors: number[] = []
        const { transport, hand } = await rig.start({
          limit: 5,
          hooks: {
            before(question) {
              if (isTurn(question) && !isSweep(question)) floors.push(floorOf(question))
            },
          },
        })
        const [first, second] = (await rig.addMany(2)) as [string, string]
        await hand.nth(2)
        const other = await rig.start({ limit: 5 })
        const [row] = await rig.query<{ left: string }>(
          `select extract(epoch from lease_until - now())::text as left from redrive.outbox where id = $1`,
          [first],
        )
        expect(Math.abs(Number(row?.left) - 30)).toBeLessThan(5)
        const [one, two] = hand.deliveries
        if (one === undefined || two === undefined) throw new Error('not delivered')
        await other.transport.pause()
        const startedAt = performance.now()
        expect(await transport.enact(one, retryIn(700))).toMatchObject(DONE)
        expect(await transport.enact(two, settle)).toMatchObject(DONE)
        const again = await hand.nth(3)
        expect(again).toMatchObject({ id: one.id, deliveryCount: 1, cycle: { attempts: 1 } })
        expect(performance.now() - startedAt).toBeGreaterThan(650)
        expect(performance.now() - startedAt).toBeLessThan(5_000)
        const third = await rig.add()
        expect((await hand.nth(4, { timeout: 3_000 })).id).toBe(third)
        await until('a look from a floor', () => floors.some(Number.isFinite))
        // The watermark also uses the database clock: slightly below the last claimed row.
        const now = performance.timeOrigin + performance.now()
        for (const floor of floors.filter(Number.isFinite)) {
          expect(now - floor).toBeGreaterThan(0)
          expect(now - floor).toBeLessThan(60_000)
        }
        expect(other.hand.deliveries).toEqual([])
        const [late] = await rig.query<{ off: string }>(
          `select extract(epoch from now() - delivered_at)::text as off from redrive.outbox where id = any($1::uuid[]) and status = 'delivered'`,
          [[first, second]],
        )
        expect(Math.abs(Number(late?.off))).toBeLessThan(60)
      })()
    })
  })
}
