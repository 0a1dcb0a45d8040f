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
/** A row that nobody has. */
const NOT_OURS: Claim = { id: '01890000-0000-7000-8000-000000000000', token: '1' }
const DELIVERED = `status = 'delivered', due_at = null, delivered_at = now()`

/** Works on what arrives until told otherwise, and sees whether two of a lane are ever in hand at once. */
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
    if (other !== undefined) this.problems.push(`${id} came while ${other} was in hand`)
    this.#busy.set(lane, id)
    setImmediate(() => {
      const decision = this.#decide(delivery)
      if (decision.kind === 'settle') this.handled.push(delivery)
      // From here on the next may come: the answer to us may take longer than that.
      this.#busy.delete(lane)
      void Promise.resolve(transport.enact(delivery, decision)).then(({ kind }) => {
        if (kind !== 'done') this.problems.push(`${decision.kind} of ${id}: ${kind}`)
      })
    })
  }

  /** What was handled of each lane, in that order. */
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
      'is kept by several consumers at once, through retries and returns',
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
      'is the order of adding also when the clock of the ids says otherwise',
      on(async (rig) => {
        const crew = new Crew(() => settle)
        const ids = await rig.addMany(5, inLane('l'))
        // As after a failover to a server whose clock is behind.
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
      'a head that waits for its retry holds up its lane and no other',
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
      'a lane whose consumer died goes on with the same one when its lease is over',
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

  describe.concurrent('never two of a lane in hand', () => {
    it(
      'when one is replayed that was before the one in hand',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ order: 'lane' })
        const [first, second] = (await rig.addMany(2, inLane('l'))) as [string, string]
        await transport.enact(await hand.nth(1), deadLetter())
        const next = await hand.nth(2)
        expect(next.id).toBe(second)
        await rig.query('select redrive.outbox_replay($1, 1, $2)', [first, 'me'])
        // In a lane of its own: when it comes, the other lane has been looked at.
        await rig.add({ lane: 'm' })
        await until('the other lane', () => hand.deliveries.some(({ lane }) => lane === 'm'))
        expect(hand.ids.filter((id) => id === first)).toHaveLength(1)
        await transport.enact(next, settle)
        await until('its turn', () => hand.ids.filter((id) => id === first).length === 2)
      }),
    )

    it(
      'when one is committed late that was added before the one in hand',
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
      'when it is committed while another consumer is taking the one behind it',
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
      'when one has just been taken that was not there when the lanes were walked',
      on(async (rig) => {
        // Many lanes, so that there is time between the walk and the taking; the one in question is last.
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
      'when ten consumers race for it: one has it, and each of them gets on',
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
      'one lane of 20,000 starves no other',
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
      'one of 20,000 costs no more than others, when statistics say that %s',
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
          // What autovacuum would do at a moment of its own choice.
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
      'more than a thousand lanes that wait do not hide the one that can go on',
      on(async (rig) => {
        await rig.addMany(2_300, (index) => ({ lane: `a-${index}`, delay: HOUR }))
        const { transport, hand } = await rig.start({ order: 'lane' })
        const last = await rig.add({ lane: 'z' })
        expect((await hand.nth(1)).id).toBe(last)
        // And back to the beginning.
        await transport.enact(await hand.nth(1), settle)
        const first = await rig.add({ lane: '0' })
        expect((await hand.nth(2)).id).toBe(first)
      }),
    )

    it(
      'all of 2,500 lanes are served, each once',
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
      'what has no lane goes beside them, within the limit',
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
      'a plan that was made when there was nothing is as good when there is much',
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
        const all = async () => [await look(''), await look(undefined), await look('', [NOT_OURS])]
        // The server notices that the table is empty, and each statement gets its plan for that.
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
