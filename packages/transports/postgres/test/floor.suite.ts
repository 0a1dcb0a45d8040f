import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { type Claim, costOfTurn, ownDatabase, turn } from './database.ts'
import {
  broken,
  floorOf,
  giveBack,
  type Hooks,
  isSweep,
  isTurn,
  mostOf,
  onRig,
  type Rig,
  type Started,
  settle,
  until,
} from './rig.ts'

/**
 * 15 s: a full scan runs about once per second on an idle machine, and no other claim finds an event below
 * the watermark. The tests of "a full scan" below check the interval.
 */
const SOON_MS = 15_000

interface Look {
  readonly isSweep: boolean
  readonly floor: number
  readonly ids: readonly unknown[]
}

/** Records the watermark and the result of each claim. */
function watching() {
  const looks: Look[] = []
  const after: Hooks['after'] = (question, rows) => {
    if (!isTurn(question) || mostOf(question) === 0) return
    const floor = isSweep(question) ? Number.NEGATIVE_INFINITY : floorOf(question)
    looks.push({ isSweep: isSweep(question), floor, ids: (rows as unknown[][]).map(([id]) => id) })
  }
  return { looks, hooks: { after } }
}

/** Adds and handles events one after the other until the condition holds. */
async function handleUntil(rig: Rig, { transport, hand }: Started, isTrue: () => boolean) {
  await until('enough of them', async () => {
    const id = await rig.add()
    await until('it', () => hand.ids.includes(id))
    const delivery = hand.deliveries.find((one) => one.id === id)
    if (delivery !== undefined) await transport.enact(delivery, settle)
    return isTrue()
  })
}

/** Repeats this until the claims start after the given time. */
const raiseFloor = (rig: Rig, started: Started, looks: readonly Look[], to: number) =>
  handleUntil(
    rig,
    started,
    () => (looks.findLast((look) => !look.isSweep)?.floor ?? Number.NEGATIVE_INFINITY) > to,
  )

/** Adds an event in a transaction that stays open. */
async function addedLate(rig: Rig) {
  const client = await rig.connect()
  await client.query('begin')
  const id = await rig.outbox.add(client, { body: 'late' })
  const { rows } = await client.query<{ due: Date }>(
    'select due_at as due from redrive.outbox where id = $1',
    [id],
  )
  return { id, dueAt: Number(rows[0]?.due), commit: () => client.query('commit') }
}

export function floors(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('an event that is committed late', () => {
    it(
      'by seconds is delivered although newer events were handled',
      on(async (rig) => {
        const { looks, hooks } = watching()
        const started = await rig.start({ hooks })
        const late = await Promise.all(Array.from({ length: 4 }, () => addedLate(rig)))
        const dueAt = Math.max(...late.map((one) => one.dueAt))
        await raiseFloor(rig, started, looks, dueAt)
        const before = started.hand.ids.length
        for (const one of late) await one.commit()
        await started.hand.nth(before + 4, { timeout: SOON_MS })
        expect(started.hand.ids.slice(before).sort()).toEqual(late.map(({ id }) => id).sort())
      }),
    )

    it(
      'by seconds is also delivered in lane order',
      on(async (rig) => {
        const { looks, hooks } = watching()
        const started = await rig.start({ hooks, order: 'lane' })
        const late = await addedLate(rig)
        await raiseFloor(rig, started, looks, late.dueAt)
        const before = started.hand.ids.length
        await late.commit()
        expect((await started.hand.nth(before + 1, { timeout: SOON_MS })).id).toBe(late.id)
      }),
    )

    it(
      'by less than a second does not wait for the full scan',
      on(async (rig) => {
        const { looks, hooks } = watching()
        const { transport, hand } = await rig.start({ hooks })
        const finds = (id: string) => looks.filter((look) => look.ids.includes(id))
        // A full scan may run first, but not every time, because it runs once per second.
        let found: readonly Look[] = []
        await until('found without it', async () => {
          const late = await addedLate(rig)
          const newer = await rig.add()
          await until('the newer', () => hand.ids.includes(newer))
          await late.commit()
          await until('the late one', () => hand.ids.includes(late.id), { timeout: SOON_MS })
          for (const one of hand.deliveries) await transport.enact(one, settle)
          found = finds(late.id)
          return found.some((look) => !look.isSweep)
        })
        expect(found).toHaveLength(1)
      }),
    )
  })

  describe.concurrent('a row below the watermark is claimed within about a second', () => {
    const held = async (rig: Rig) => {
      const { looks, hooks } = watching()
      const started = await rig.start({ hooks })
      const id = await rig.add()
      const delivery = await started.hand.nth(1)
      const dueAt = Number((await rig.row(id)).due_at)
      await raiseFloor(rig, started, looks, dueAt)
      const isBack = () => started.hand.ids.filter((one) => one === id).length > 1
      return { ...started, looks, id, delivery, isBack }
    }

    it(
      'after the same consumer returned it',
      on(async (rig) => {
        const { transport, hand, looks, id, delivery } = await held(rig)
        let inHand = delivery
        // The next claim must be a full scan, not only by chance.
        for (let times = 2; times <= 5; times++) {
          expect(await transport.enact(inHand, giveBack)).toMatchObject({ destination: 'returned' })
          const before = looks.length
          const ofIt = () => hand.deliveries.filter((one) => one.id === id)
          await until('it is back', () => ofIt().length === times, { timeout: SOON_MS })
          // If the turn that returns it is a full scan, it claims the row immediately, and no next turn follows.
          const found = looks.findLastIndex((look) => look.ids.includes(id))
          expect(looks[Math.min(before, found)]).toMatchObject({ isSweep: true })
          inHand = ofIt().at(-1) ?? delivery
          await raiseFloor(rig, { transport, hand }, looks, Date.now() - 2_000)
        }
      }),
    )

    it(
      'after another consumer returned it on close',
      on(async (rig) => {
        const { looks, hooks } = watching()
        const other = await rig.start({ limit: 1 })
        const id = await rig.add()
        await other.hand.nth(1)
        const started = await rig.start({ hooks })
        await raiseFloor(rig, started, looks, Number((await rig.row(id)).due_at))
        const before = started.hand.ids.length
        await other.transport.close()
        expect((await started.hand.nth(before + 1, { timeout: SOON_MS })).id).toBe(id)
      }),
    )

    it(
      'after its consumer crashed',
      on(async (rig) => {
        const { id, isBack, hand } = await held(rig)
        await rig.expire(id)
        await until('it is back', isBack, { timeout: SOON_MS })
        expect(hand.deliveries.findLast((one) => one.id === id)?.deliveryCount).toBe(2)
      }),
    )
  })

  describe.concurrent('a full scan', () => {
    it(
      'is not repeated in each turn after a failure',
      on(async (rig) => {
        let isSlow = false
        let sweeps = 0
        const { transport, hand } = await rig.start({
          hooks: {
            before(question) {
              if (!isSlow || !isTurn(question) || mostOf(question) === 0) return
              if (!isSweep(question)) return
              sweeps += 1
              // As if the scan exceeded the timeout.
              throw broken()
            },
          },
        })
        await rig.add()
        expect(await transport.enact(await hand.nth(1), settle)).toMatchObject({ kind: 'done' })
        isSlow = true
        await until('a look at everything', () => sweeps > 0)
        await rig.add()
        await hand.nth(2, { timeout: 5_000 })
      }),
    )

    it(
      'runs about once per second and not more often, even under load',
      on(async (rig) => {
        const { looks, hooks } = watching()
        const started = await rig.start({ hooks })
        // Before the first event, no watermark exists.
        await handleUntil(rig, started, () => looks.some((look) => !look.isSweep && look.floor > 0))
        const startedAt = performance.now()
        const before = looks.length
        const sweeps = () => looks.slice(before).filter((look) => look.isSweep).length
        await handleUntil(rig, started, () => sweeps() >= 3)
        expect(performance.now() - startedAt).toBeGreaterThan(1_900)
        expect(looks.length - before).toBeGreaterThan(sweeps() * 3)
      }),
    )
  })

  describe.concurrent('while nothing can be vacuumed', () => {
    it(
      'reads a fraction of the pages in a claim above the watermark',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        for (let part = 0; part < 2; part++) {
          const events = Array.from({ length: 10_000 }, () => ({ body: 1 }))
          await rig.outbox.addMany(own, events)
        }
        const forgotten = await own.connect()
        await forgotten.query('begin isolation level repeatable read')
        await forgotten.query('select from redrive.outbox limit 1')
        let done: readonly Claim[] = []
        let handled = 0
        do {
          done = await turn(own, rig.queue, { done, most: 500 })
          handled += done.length
        } while (done.length > 0)
        expect(handled).toBe(20_000)
        await rig.outbox.add(own, { body: 'last' })
        const { rows } = await own.query<{ floor: string }>(
          `select (max(due_at) - interval '1 millisecond')::text as floor from redrive.outbox`,
        )
        const floor = rows[0]?.floor ?? ''
        const above = await costOfTurn(own, rig.queue, { most: 10, floor })
        const everything = await costOfTurn(own, rig.queue, { most: 10 })
        await forgotten.query('commit')
        forgotten.release()
        expect([above.rows, everything.rows]).toEqual([1, 1])
        expect(above.buffers).toBeLessThan(1_000)
        expect(everything.buffers).toBeGreaterThan(above.buffers * 10)
      }),
    )

    it(
      'stays fast because a consumer claims above the watermark',
      on(async (rig) => {
        const { looks, hooks } = watching()
        await rig.addMany(3_000)
        const started = await rig.start({ hooks, limit: 100 })
        const settled = new Set<string>()
        await until('all of them', () => {
          for (const one of started.hand.deliveries) {
            if (settled.has(one.id)) continue
            settled.add(one.id)
            void started.transport.enact(one, settle)
          }
          return settled.size === 3_000
        })
        expect(looks.filter((look) => look.isSweep).length).toBeLessThan(looks.length / 3)
      }),
    )
  })
}
