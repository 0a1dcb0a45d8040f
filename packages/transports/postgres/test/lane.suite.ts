import type { Decision } from '@redrive/core'
import { seededRandom } from '@redrive/testing'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import type { PostgresDelivery, PostgresTransport } from '../src/index.ts'
import {
  type Claim,
  costOf,
  costOfTurn,
  ownDatabase,
  TURN_SQL,
  turn,
  turnValues,
} from './database.ts'
import {
  deadLetter,
  failedCycle,
  giveBack,
  onRig,
  type Rig,
  retryIn,
  settle,
  until,
} from './rig.ts'

const HOUR = '1h'
/** A row without a lease. */
const NOT_OURS: Claim = { id: '01890000-0000-7000-8000-000000000000', token: '1' }
const DELIVERED = `status = 'delivered', due_at = null, delivered_at = now()`

/** Handles events until it is stopped, and checks that no two events of a lane are in flight together. */
class Crew {
  readonly handled: PostgresDelivery[] = []
  readonly problems: string[] = []
  readonly #busy = new Map<string, string>()
  readonly #decide: (delivery: PostgresDelivery) => Decision

  constructor(decide: (delivery: PostgresDelivery) => Decision) {
    this.#decide = decide
  }

  async join(transport: PostgresTransport, limit = 10): Promise<void> {
    await transport.open()
    transport.limit(limit)
    transport.receive({
      deliver: (delivery) => this.#work(transport, delivery),
      lost: ({ id }) => void this.problems.push(`lost ${id}`),
    })
  }

  #work(transport: PostgresTransport, delivery: PostgresDelivery): void {
    const { lane = '', id } = delivery
    const other = this.#busy.get(lane)
    if (other !== undefined) this.problems.push(`${id} came while ${other} was in flight`)
    this.#busy.set(lane, id)
    setImmediate(() => {
      const decision = this.#decide(delivery)
      if (decision.kind === 'settle') this.handled.push(delivery)
      // From here on the next event may arrive, even before the answer.
      this.#busy.delete(lane)
      void Promise.resolve(transport.enact(delivery, decision)).then(({ kind }) => {
        if (kind !== 'done') this.problems.push(`${decision.kind} of ${id}: ${kind}`)
      })
    })
  }

  /** The handled events of each lane, in order. */
  byLane(): Record<string, string[]> {
    const lanes: Record<string, string[]> = {}
    for (const { lane = '', id } of this.handled) (lanes[lane] ??= []).push(id)
    return lanes
  }
}

const inLane = (lane: string) => () => ({ lane })

export function lanes(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('order within a lane', () => {
    it(
      'is kept by several concurrent consumers, through retries and returns',
      on(async (rig) => {
        const random = seededRandom(7)
        const crew = new Crew(({ cycle }) => {
          const chance = random()
          if (chance < 0.2) return retryIn(0, failedCycle(cycle.attempts + 1))
          return chance < 0.3 ? giveBack : settle
        })
        const ids = await rig.addMany(240, (index) => ({ lane: `lane-${index % 8}` }))
        for (let count = 0; count < 3; count++) await crew.join(rig.transport({ order: 'lane' }))
        await until('all', () => crew.handled.length >= 240)
        expect(crew.problems).toEqual([])
        const expected: Record<string, string[]> = {}
        for (const [index, id] of ids.entries()) (expected[`lane-${index % 8}`] ??= []).push(id)
        expect(crew.byLane()).toEqual(expected)
      }),
    )

    it(
      'is the order of adding, even if the times in the ids differ',
      on(async (rig) => {
        const crew = new Crew(() => settle)
        const ids = await rig.addMany(5, inLane('l'))
        // Like a failover to a server whose clock is behind.
        await rig.query(
          `update redrive.outbox set due_at = due_at - position * interval '1 second' where queue = $1`,
          [rig.queue],
        )
        await crew.join(rig.transport({ order: 'lane' }))
        await until('all', () => crew.handled.length >= 5)
        expect(crew.byLane()).toEqual({ l: ids })
      }),
    )

    it(
      'blocks only its own lane while the first event waits for a retry',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ order: 'lane' })
        const [head] = await rig.addMany(2, inLane('a'))
        const delivery = await hand.nth(1)
        await transport.enact(delivery, retryIn(700))
        const startedAt = performance.now()
        const other = await rig.add({ lane: 'b' })
        expect((await hand.nth(2)).id).toBe(other)
        expect((await hand.nth(3)).id).toBe(head)
        expect(performance.now() - startedAt).toBeGreaterThan(600)
      }),
    )

    it.each([
      ['dead letter', deadLetter(), 'failed'],
      ['completion', settle, 'delivered'],
    ] as const)('a %s makes way for the next of its lane', async (_, decision, status) => {
      await on(async (rig) => {
        const { transport, hand } = await rig.start({ order: 'lane' })
        const [first, second] = (await rig.addMany(2, inLane('l'))) as [string, string]
        const delivery = await hand.nth(1)
        expect(delivery.id).toBe(first)
        await transport.enact(delivery, decision)
        expect((await hand.nth(2)).id).toBe(second)
        expect(await rig.row(first)).toMatchObject({ status })
      })()
    })

    it(
      'continues with the same event when the lease of a crashed consumer expires',
      on(async (rig) => {
        const [first] = (await rig.addMany(2, inLane('l'))) as [string, string]
        const died = await rig.start({ order: 'lane', limit: 1 })
        await died.hand.nth(1)
        const { hand } = await rig.start({ order: 'lane' })
        await rig.expire(first)
        expect(await hand.nth(1)).toMatchObject({ id: first, deliveryCount: 2 })
      }),
    )
  })

  describe.concurrent('one event of a lane in flight', () => {
    it(
      'when an earlier event than the one in flight is replayed',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ order: 'lane' })
        const [first, second] = (await rig.addMany(2, inLane('l'))) as [string, string]
        await transport.enact(await hand.nth(1), deadLetter())
        const next = await hand.nth(2)
        expect(next.id).toBe(second)
        await rig.query('select redrive.outbox_replay($1, 1, $2)', [first, 'me'])
        // In a separate lane: when it arrives, the other lane has been checked.
        await rig.add({ lane: 'm' })
        await until('the other lane', () => hand.deliveries.some(({ lane }) => lane === 'm'))
        expect(hand.ids.filter((id) => id === first)).toHaveLength(1)
        await transport.enact(next, settle)
        await until('its turn', () => hand.ids.filter((id) => id === first).length === 2)
      }),
    )

    it(
      'when an earlier event than the one in flight is committed late',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ order: 'lane' })
        const late = await rig.connect()
        await late.query('begin')
        const first = await rig.outbox.add(late, { body: 1, lane: 'l' })
        const second = await rig.add({ lane: 'l' })
        const inHand = await hand.nth(1)
        expect(inHand.id).toBe(second)
        await late.query('commit')
        await rig.add({ lane: 'm' })
        await until('the other lane', () => hand.deliveries.some(({ lane }) => lane === 'm'))
        expect(hand.ids).not.toContain(first)
        await transport.enact(inHand, settle)
        await until('its turn', () => hand.ids.includes(first))
      }),
    )

    it(
      'when an event is committed while another consumer claims the next one',
      on(async (rig) => {
        const late = await rig.connect()
        await late.query('begin')
        await rig.outbox.add(late, { body: 1, lane: 'l' })
        await rig.add({ lane: 'l' })
        const taking = await rig.connect()
        await taking.query('begin')
        expect(await turn(taking, rig.queue, { most: 5, after: '' })).toHaveLength(1)
        await late.query('commit')
        expect(await turn(pool, rig.queue, { most: 5, after: '' })).toEqual([])
        await taking.query('commit')
        expect(await turn(pool, rig.queue, { most: 5, after: '' })).toEqual([])
      }),
    )

    it(
      'when an event was claimed that did not exist when the lanes were read',
      on(async (rig) => {
        // Many lanes, so that time passes between reading the lanes and the claim; the tested lane is last.
        await rig.addMany(900, (index) => ({ lane: `a-${index}`, delay: HOUR }))
        const [slow, late] = [await rig.connect(), await rig.connect()]
        for (let round = 0; round < 12; round++) {
          const lane = `z-${round}`
          await late.query('begin')
          await rig.outbox.add(late, { body: 1, lane })
          await rig.add({ lane })
          const walking = turn(slow, rig.queue, { most: 5, after: '' })
          await late.query('commit')
          const quick = await turn(pool, rig.queue, { most: 5, after: 'y' })
          const taken = [...(await walking), ...quick]
          expect(taken.length).toBeLessThanOrEqual(1)
          await rig.query('delete from redrive.outbox where queue = $1 and lane = $2', [
            rig.queue,
            lane,
          ])
        }
      }),
    )

    it(
      'when ten consumers claim concurrently: one gets it, and all continue',
      on(async (rig) => {
        const ids = await rig.addMany(15, inLane('l'))
        const order: string[] = []
        for (const _ of ids) {
          const racing = Array.from({ length: 10 }, () =>
            turn(pool, rig.queue, { most: 5, after: '' }),
          )
          const taken = (await Promise.all(racing)).flat()
          expect(taken).toHaveLength(1)
          order.push(...taken.map(({ id }) => id))
          await turn(pool, rig.queue, { done: taken })
        }
        expect(order).toEqual(ids)
      }),
    )
  })

  describe.concurrent('many events and many lanes', () => {
    it(
      'do not starve when one lane has 20,000 events',
      on(async (rig) => {
        await rig.addMany(10_000, inLane('b-long'))
        await rig.addMany(10_000, inLane('b-long'))
        const short = await rig.addMany(60, (index) => ({
          lane: `${'ac'[index % 2]}-${index % 12}`,
        }))
        const crew = new Crew(() => settle)
        await crew.join(rig.transport({ order: 'lane' }), 20)
        const isShort = ({ lane }: PostgresDelivery) => lane !== 'b-long'
        await until('the short ones', () => crew.handled.filter(isShort).length >= short.length)
        expect(crew.handled.filter((one) => !isShort(one)).length).toBeLessThan(100)
        expect(crew.handled.filter((one) => !isShort(one)).length).toBeGreaterThan(0)
        expect(crew.problems).toEqual([])
      }),
    )

    it.each([
      ['there are none yet', 'select'],
      ['there was little and it is done', `update redrive.outbox set ${DELIVERED}`],
      ['little was due', `update redrive.outbox set due_at = now() + interval '1 hour'`],
      ['much was due', 'select'],
    ])(
      'cost the same for a lane of 20,000 events, when statistics show that %s',
      async (what, then) => {
        await on(async (rig) => {
          const { pool: own } = await ownDatabase(rig, url)
          const add = (count: number, lane: (index: number) => string | undefined) => {
            const events = Array.from({ length: count }, (_, body) => ({
              body,
              lane: lane(body) ?? '',
            }))
            return rig.outbox.addMany(own, events)
          }
          // Autovacuum would do this at an unknown time.
          await own.query('alter table redrive.outbox_default set (autovacuum_enabled = off)')
          const today = `outbox_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`
          await own.query(`alter table redrive.${today} set (autovacuum_enabled = off)`)
          if (then !== 'select' || what === 'much was due') await add(2_000, () => undefined)
          await own.query(then)
          await own.query('vacuum analyze redrive.outbox')
          if (what === 'much was due') await own.query(`update redrive.outbox set ${DELIVERED}`)
          await add(10_000, () => 'b-long')
          await add(10_000, () => 'b-long')
          await add(60, (index) => `${'ac'[index % 2]}-${index % 12}`)
          const cost = await costOfTurn(own, rig.queue, { most: 50, after: '' })
          expect(cost.rows).toBe(13)
          expect(cost.buffers).toBeLessThan(3_000)
        })()
      },
    )

    it(
      'find a ready lane behind more than a thousand waiting lanes',
      on(async (rig) => {
        await rig.addMany(2_300, (index) => ({ lane: `a-${index}`, delay: HOUR }))
        const { transport, hand } = await rig.start({ order: 'lane' })
        const last = await rig.add({ lane: 'z' })
        expect((await hand.nth(1)).id).toBe(last)
        // The next claim starts at the first lane again.
        await transport.enact(await hand.nth(1), settle)
        const first = await rig.add({ lane: '0' })
        expect((await hand.nth(2)).id).toBe(first)
      }),
    )

    it(
      'serve all of 2,500 lanes, each once',
      on(async (rig) => {
        const ids = await rig.addMany(2_500, (index) => ({ lane: `lane-${index}` }))
        const crew = new Crew(() => settle)
        await crew.join(rig.transport({ order: 'lane' }), 500)
        await until('all', () => crew.handled.length >= ids.length)
        expect(crew.handled.map(({ id }) => id).sort()).toEqual([...ids].sort())
        expect(crew.problems).toEqual([])
      }),
    )

    it(
      'include events without a lane, within the limit',
      on(async (rig) => {
        await rig.addMany(30, (index) => (index % 2 === 0 ? { lane: `l-${index}` } : {}))
        expect(await turn(pool, rig.queue, { most: 10, after: '' })).toHaveLength(10)
        expect(await turn(pool, rig.queue, { most: 10, after: '' })).toHaveLength(10)
        expect(await turn(pool, rig.queue, { most: 100, after: '' })).toHaveLength(10)
        expect(await rig.count('in_flight')).toBe(30)
      }),
    )

    it.each([
      ['with lanes', ''],
      ['without', undefined],
    ])('a look %s does not look at everything that is not due yet', async (_, after) => {
      await on(async (rig) => {
        await rig.addMany(10_000, () => ({ delay: HOUR }))
        await rig.add({ lane: 'l' })
        const parts = { most: 10, ...(after === undefined ? {} : { after }) }
        const cost = await costOfTurn(pool, rig.queue, parts)
        expect(cost.rows).toBe(1)
        expect(cost.buffers).toBeLessThan(2_000)
      })()
    })

    it(
      'use a plan from an empty table that stays fast with many rows',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        const client = await own.connect()
        rig.atEnd(async () => client.release())
        const look = async (after: string | undefined, done: readonly Claim[] = []) => {
          await client.query('begin')
          const parts = { most: 10, done, ...(after === undefined ? {} : { after }) }
          const cost = await costOf(client, TURN_SQL, turnValues(rig.queue, parts))
          await client.query('rollback')
          return cost.buffers
        }
        /** The minimum counts: after an automatic analyze, the next look also reads what a new plan needs. */
        const lowest = async (after: string | undefined, done: readonly Claim[] = []) => {
          const costs: number[] = []
          for (let time = 0; time < 4; time++) costs.push(await look(after, done))
          return Math.min(...costs)
        }
        const all = async () => [
          await lowest(''),
          await lowest(undefined),
          await lowest('', [NOT_OURS]),
        ]
        // The server knows that the table is empty, and plans each statement for this.
        await own.query('vacuum analyze redrive.outbox')
        await all()
        await rig.outbox.addMany(
          own,
          Array.from({ length: 10_000 }, (_, index) => ({ body: index, delay: HOUR })),
        )
        await rig.outbox.add(own, { body: 0, lane: 'l' })
        for (const buffers of await all()) expect(buffers).toBeLessThan(2_000)
      }),
    )
  })
}
