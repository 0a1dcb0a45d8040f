import type { Decision, Delivery } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { describe, expect, it } from 'vitest'
import { type OutboxEvent, postgresInbox } from '../src/index.ts'
import { psql } from './database.ts'
import {
  deadLetter,
  drop,
  failedCycle,
  onRig,
  quarantine,
  type Rig,
  retryIn,
  type Started,
  settle,
  until,
} from './rig.ts'

const EVENT = {
  body: { order: 7 },
  type: 'order.placed',
  key: 'order-7',
  lane: 'customer-1',
  headers: { tenant: 'x' },
} as const

/** Returns an event that was dead-lettered after two attempts; its consumer is stopped. */
async function givenUp(rig: Rig, event: Partial<OutboxEvent> = {}): Promise<Dead> {
  const id = await rig.add(event)
  const started = await rig.start()
  await until('it', () => started.hand.ids.includes(id))
  const delivery = started.hand.deliveries.find((one) => one.id === id)
  if (delivery === undefined) throw new Error('not delivered')
  await started.transport.pause()
  await started.transport.enact(delivery, deadLetter(failedCycle(2)))
  return { id, ...started }
}

interface Dead extends Started {
  readonly id: string
}

async function drained(rig: Rig): Promise<DrainedDeadLetter> {
  const { deadLetters } = await rig.source().drain({ limit: 1 })
  const [dead] = deadLetters
  if (dead === undefined) throw new Error('no dead letter')
  return dead
}

const EDITED = { key: 'order-7/edited', replaces: 'order-7' }
const GONE = 'delete from redrive.outbox where queue = $1'

const edit = (
  dead: DrainedDeadLetter,
  { body, key }: { body: unknown; key: string },
): DrainedDeadLetter => ({
  ...dead,
  delivery: {
    ...dead.delivery,
    bytes: Buffer.from(JSON.stringify(body)),
    key,
    replaces: dead.delivery.key,
  },
})

const bodyOf = ({ bytes }: Delivery): unknown => JSON.parse(Buffer.from(bytes).toString())

async function placeOf(rig: Rig): Promise<string | undefined> {
  const [row] = await rig.query<{ position: string }>(
    'select position::text from redrive.outbox where queue = $1',
    [rig.queue],
  )
  return row?.position
}

const replay = async (rig: Rig, id: string, generation: number): Promise<string> => {
  const [row] = await rig.query<{ answer: string }>(
    'select redrive.outbox_replay($1, $2, $3) as answer',
    [id, generation, 'me@example.com'],
  )
  return row?.answer ?? ''
}

export function replaying(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a replay from psql', () => {
    it(
      'opens the next cycle, stores the last one in the history, and is visible to the handler',
      on(async (rig) => {
        const { id } = await givenUp(rig, EVENT)
        const before = await rig.row(id)
        expect(before).toMatchObject({
          status: 'failed',
          attempts: 2,
          reason: 'attempts_exhausted',
        })
        const printed = await psql(
          url,
          `select redrive.outbox_replay(id, generation + 1, 'me@example.com') from redrive.outbox_dead_letter where queue = '${rig.queue}'`,
        )
        expect(printed).toEqual(['replayed'])
        const after = await rig.row(id)
        expect(after).toMatchObject({
          status: 'pending',
          attempts: 0,
          lapses: 0,
          generation: '1',
          key: 'order-7',
          lane: 'customer-1',
          lease_until: null,
          lease_token: null,
          first_failed_at: null,
          failed_at: null,
          last_error: null,
          reason: null,
          cycle: null,
        })
        expect(after.replay_id).toMatch(/^[\da-f-]{36}$/)
        expect(after.failure_history).toEqual([
          {
            number: 1,
            attempts: 2,
            firstFailedAt: 1_700_000_000_000,
            failedAt: expect.any(Number) as unknown,
            lastDelayMs: 250,
            notBefore: null,
            history: [1, 2].map(
              (number) => expect.objectContaining({ number, message: 'it broke' }) as unknown,
            ),
            reason: 'attempts_exhausted',
            lastError: 'it broke',
            generation: 0,
            replayId: null,
            replayedAt: expect.any(Number) as unknown,
            replayedBy: 'me@example.com',
          },
        ])
        const [failed] = after.failure_history
        // The driver truncates a value that the database rounds.
        expect(Number(failed?.['failedAt']) - Number(before.failed_at)).toBeLessThanOrEqual(1)
        expect(Number(failed?.['failedAt']) - Number(before.failed_at)).toBeGreaterThanOrEqual(0)
        const seen: unknown[] = []
        await rig.consume(({ key, body, headers, type }, { attempt, cycle, history, replayId }) => {
          seen.push({ key, body, headers, type, attempt, cycle, history, replayId })
        })
        await rig.becomes(id, 'delivered')
        const { lane: _, ...event } = EVENT
        expect(seen).toEqual([
          { ...event, attempt: 1, cycle: 2, history: [], replayId: after.replay_id },
        ])
      }),
    )

    it(
      'that fails again is stored as the second of two cycles',
      on(async (rig) => {
        const { id, transport, hand } = await givenUp(rig)
        await replay(rig, id, 5)
        const { replay_id: firstReplay } = await rig.row(id)
        transport.resume()
        const delivery = await hand.nth(2)
        expect(delivery).toMatchObject({ generation: 5, cycle: { number: 2, attempts: 0 } })
        await transport.pause()
        await transport.enact(delivery, deadLetter(failedCycle(1)))
        expect(await replay(rig, id, 6)).toBe('replayed')
        const { failure_history: history, replay_id: secondReplay } = await rig.row(id)
        expect(
          history.map(({ number, attempts, generation, replayId }) => [
            number,
            attempts,
            generation,
            replayId,
          ]),
        ).toEqual([
          [1, 2, 0, null],
          [2, 1, 5, firstReplay],
        ])
        expect(secondReplay).not.toBe(firstReplay)
        transport.resume()
        expect(await hand.nth(3)).toMatchObject({ cycle: { number: 3 }, replayId: secondReplay })
      }),
    )

    it(
      'of a row that is not a dead letter changes nothing and returns the reason',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ limit: 3 })
        const waiting = await rig.add({ delay: '1h' })
        const [delivered, taken] = (await rig.addMany(2)) as [string, string]
        await hand.nth(2)
        const done = hand.deliveries.find(({ id }) => id === delivered)
        if (done === undefined) throw new Error('not delivered')
        await transport.enact(done, settle)
        const before = await rig.rows()
        for (const id of [waiting, delivered, taken]) {
          expect(await replay(rig, id, 1)).toBe('not_failed')
        }
        expect(await replay(rig, '00000000-0000-7000-8000-000000000000', 1)).toBe('not_found')
        expect(await rig.rows()).toEqual(before)
      }),
    )

    it(
      'with a generation that is not higher changes nothing',
      on(async (rig) => {
        const { id, transport, hand } = await givenUp(rig)
        expect(await replay(rig, id, 0)).toBe('not_newer')
        expect(await replay(rig, id, 3)).toBe('replayed')
        transport.resume()
        await transport.enact(await hand.nth(2), deadLetter())
        const before = await rig.row(id)
        for (const generation of [0, 2, 3]) {
          expect(await replay(rig, id, generation)).toBe('not_newer')
        }
        expect(await rig.row(id)).toEqual(before)
      }),
    )

    it(
      'by twenty concurrent callers happens once',
      on(async (rig) => {
        const { id } = await givenUp(rig)
        const answers = await Promise.all(Array.from({ length: 20 }, () => replay(rig, id, 1)))
        expect(answers.filter((answer) => answer === 'replayed')).toHaveLength(1)
        expect(answers.filter((answer) => answer === 'not_failed')).toHaveLength(19)
        expect((await rig.row(id)).failure_history).toHaveLength(1)
      }),
    )

    it(
      'that waits for a concurrent replay of the same row returns its outcome',
      on(async (rig) => {
        const { id } = await givenUp(rig)
        const first = await rig.connect()
        await first.query('begin')
        await first.query('select redrive.outbox_replay($1, 1, $2)', [id, 'first'])
        const second = replay(rig, id, 2)
        await until('it waits', async () => {
          const waiting = await rig.query(
            `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%outbox_replay(%' and datname = current_database()`,
          )
          return waiting.length > 0
        })
        await first.query('commit')
        expect(await second).toBe('not_failed')
        expect(await rig.row(id)).toMatchObject({ generation: '1' })
      }),
    )

    it(
      'of an event whose handler had committed does not run it again',
      on(async (rig) => {
        const inbox = postgresInbox({ pool })
        let runs = 0
        const id = await rig.add({ key: 'k' })
        const first = await rig.consume<PoolClient>(() => void (runs += 1), {
          inbox,
          transport: rig.transport({
            hooks: {
              // The completion never arrives: the handler has committed, but the transport does not know.
              before({ text, values }) {
                const isDone = text.includes('outbox_turn(') && (values[0] as unknown[]).length > 0
                if (isDone) throw new Error('gone')
              },
            },
          }),
        })
        await until('it ran', () => runs === 1)
        await until('it is in the inbox', async () => {
          const keys = await rig.query('select from redrive.event_handled where consumer = $1', [
            rig.queue,
          ])
          return keys.length === 1
        })
        await first.stop({ drain: 0 })
        // Before the next start: a lease that expires after the claim would make the delivery stale.
        await rig.expire(id)
        const { transport, hand } = await rig.start()
        const delivery = await hand.nth(1)
        await transport.pause()
        await transport.enact(delivery, deadLetter())
        expect(await replay(rig, id, 1)).toBe('replayed')
        const events = rig.events()
        await rig.consume<PoolClient>(() => void (runs += 1), { inbox })
        await rig.becomes(id, 'delivered')
        expect(runs).toBe(1)
        await until('it is reported', () =>
          events.some(
            (event) =>
              event.type === 'enacted' &&
              event.decision.kind === 'settle' &&
              event.decision.reason === 'already_handled',
          ),
        )
      }),
    )
  })

  describe.concurrent('a dead letter that is put back', () => {
    it(
      'waits in the outbox again, unchanged',
      on(async (rig) => {
        await givenUp(rig)
        const source = rig.source()
        const batch = await source.drain({ limit: 1 })
        await batch.release()
        expect(await source.depth()).toBe(0)
        await source.putBack(batch.deadLetters)
        expect(await source.depth()).toBe(1)
        const { deadLetters } = await source.drain({ limit: 1 })
        expect(deadLetters).toEqual(batch.deadLetters)
      }),
    )

    it(
      'is refused when the outbox no longer has it',
      on(async (rig) => {
        await givenUp(rig)
        const dead = await drained(rig)
        await rig.pool.query(GONE, [rig.queue])
        await expect(rig.source().putBack([dead])).rejects.toMatchObject({
          code: 'REFUSED',
          message: expect.stringContaining('no longer has 1 of these dead letters') as string,
        })
      }),
    )
  })

  describe.concurrent('a replay by the control plane', () => {
    it(
      'with one replay id happens once, even if it is published repeatedly',
      on(async (rig) => {
        const { id, transport, hand } = await givenUp(rig)
        const dead = await drained(rig)
        const source = rig.source()
        const publishing = Array.from({ length: 5 }, () =>
          source.publish({ deadLetter: dead, replayId: 'r-1' }),
        )
        await Promise.all(publishing)
        expect(await rig.row(id)).toMatchObject({
          status: 'pending',
          generation: '1',
          replay_id: 'r-1',
        })
        transport.resume()
        const delivery = await hand.nth(2)
        expect(delivery).toMatchObject({ replayId: 'r-1', cycle: { number: 2 } })
        await transport.pause()
        const inFlight = await rig.row(id)
        const publishBoth = async () => {
          await source.publish({ deadLetter: dead, replayId: 'r-1' })
          await source.publish({ deadLetter: dead, replayId: 'r-2' })
        }
        // Another replay has no effect, because the row is no longer a dead letter.
        await publishBoth()
        expect(await rig.row(id)).toEqual(inFlight)
        await transport.enact(delivery, settle)
        const delivered = await rig.row(id)
        await publishBoth()
        expect(await rig.row(id)).toEqual(delivered)
        expect(delivered).toMatchObject({ status: 'delivered', replay_id: 'r-1' })
      }),
    )

    it(
      'is not repeated after a later replay',
      on(async (rig) => {
        const { id, transport, hand } = await givenUp(rig)
        const source = rig.source()
        const dead = await drained(rig)
        transport.resume()
        for (const [index, replayId] of ['r-1', 'r-2'].entries()) {
          await source.publish({ deadLetter: dead, replayId })
          await transport.enact(await hand.nth(index + 2), deadLetter())
        }
        await source.publish({ deadLetter: dead, replayId: 'r-1' })
        await source.publish({ deadLetter: dead, replayId: 'r-2' })
        expect(await rig.row(id)).toMatchObject({ status: 'failed', replay_id: 'r-2' })
      }),
    )

    it(
      'of a dropped row creates it again, with its history, bytes and cycle number',
      on(async (rig) => {
        const { id, transport, hand } = await givenUp(rig, EVENT)
        await replay(rig, id, 4)
        transport.resume()
        const second = await hand.nth(2)
        await transport.pause()
        await transport.enact(second, deadLetter(failedCycle(1)))
        const dead = await drained(rig)
        // As if its partition had been dropped.
        await rig.query('delete from redrive.outbox where id = $1', [id])
        const source = rig.source()
        const replaying = { deadLetter: dead, replayId: 'r-9' }
        await Promise.all([source.publish(replaying), source.publish(replaying)])
        const row = await rig.row(id)
        expect(row).toMatchObject({ generation: '5', replay_id: 'r-9', key: 'order-7' })
        expect(
          row.failure_history.map(({ number, attempts, replayedBy }) => [
            number,
            attempts,
            replayedBy,
          ]),
        ).toEqual([
          [1, 2, 'me@example.com'],
          [2, 1, 'redrive'],
        ])
        transport.resume()
        const delivery = await hand.nth(3)
        const { body, ...rest } = EVENT
        expect(delivery).toMatchObject({ ...rest, id, replayId: 'r-9', cycle: { number: 3 } })
        expect(JSON.parse(Buffer.from(delivery.bytes).toString())).toEqual(body)
        expect(delivery.contentType).toBe('application/json')
        await transport.enact(delivery, settle)
        expect(await rig.row(id)).toMatchObject({ status: 'delivered' })
      }),
    )

    it.each([
      ['that exists', () => Promise.resolve(), true],
      ['that was dropped', (rig: Rig) => rig.query(GONE, [rig.queue]), false],
    ])(
      'of a row %s with edits changes key and content in place and stores the replaced key',
      async (_, lose, keepsPlace) => {
        await on(async (rig) => {
          const { id, transport, hand } = await givenUp(rig, EVENT)
          const place = await placeOf(rig)
          const dead = await drained(rig)
          await lose(rig)
          const edited = edit(dead, { body: { order: 8 }, key: 'order-7/edited' })
          await rig.source().publish({ deadLetter: edited, replayId: 'r-1' })
          await rig.source().publish({ deadLetter: edited, replayId: 'r-1' })
          expect(await rig.row(id)).toMatchObject({ key: 'order-7/edited', replaces: 'order-7' })
          transport.resume()
          const delivery = await hand.nth(2)
          const { body: _, ...rest } = EVENT
          expect(delivery).toMatchObject({ ...rest, id, ...EDITED, replayId: 'r-1' })
          expect(bodyOf(delivery)).toEqual({ order: 8 })
          expect((await placeOf(rig)) === place, 'its place').toBe(keepsPlace)
          await transport.pause()
          await transport.enact(delivery, deadLetter())
          const again = await drained(rig)
          expect(again.delivery).toMatchObject(EDITED)
          expect(bodyOf(again.delivery)).toEqual({ order: 8 })
          await replay(rig, id, 9)
          transport.resume()
          expect(await hand.nth(3), 'also from psql').toMatchObject(EDITED)
        })()
      },
    )

    it(
      'without edits does not change the content of the row',
      on(async (rig) => {
        const { id } = await givenUp(rig, EVENT)
        const dead = await drained(rig)
        const { replaces: _, ...delivery } = edit(dead, { body: 'lost', key: 'lost' }).delivery
        await rig.source().publish({ deadLetter: { ...dead, delivery }, replayId: 'r-1' })
        expect(await rig.row(id)).toMatchObject({ key: 'order-7', replaces: null })
        const payload = `select convert_from(payload, 'utf8')::json as body from redrive.outbox where id = $1`
        expect(await rig.query(payload, [id])).toEqual([{ body: EVENT.body }])
      }),
    )

    it(
      'of a dropped row without a key keeps its id as the key',
      on(async (rig) => {
        const { id } = await givenUp(rig)
        const dead = await drained(rig)
        await rig.query('delete from redrive.outbox where id = $1', [id])
        await rig.source().publish({ deadLetter: dead, replayId: 'r-1' })
        expect(await rig.row(id)).toMatchObject({ key: null, status: 'pending' })
      }),
    )

    it.each(['publish', 'outbox_replay'] as const)(
      'of a released dead letter works with %s',
      async (way) => {
        await on(async (rig) => {
          const { id, transport, hand } = await givenUp(rig)
          const source = rig.source()
          const batch = await source.drain({ limit: 10 })
          await batch.release()
          expect(await source.depth()).toBe(0)
          expect(await rig.row(id)).toMatchObject({
            status: 'failed',
            deleted_at: expect.any(Date) as unknown,
          })
          const [dead] = batch.deadLetters
          if (dead === undefined) throw new Error('no dead letter')
          if (way === 'publish') await source.publish({ deadLetter: dead, replayId: 'r-1' })
          else await replay(rig, id, 1)
          expect(await rig.row(id)).toMatchObject({
            status: 'pending',
            deleted_at: null,
            generation: '1',
          })
          transport.resume()
          expect((await hand.nth(2)).id).toBe(id)
        })()
      },
    )

    it(
      'is not affected by a later release or abandon',
      on(async (rig) => {
        const { id, transport, hand } = await givenUp(rig)
        const batch = await rig.source().drain({ limit: 1 })
        const other = await rig.source().drain({ limit: 1 })
        expect(other.deadLetters).toEqual([])
        await replay(rig, id, 1)
        transport.resume()
        const delivery = await hand.nth(2)
        await transport.pause()
        await transport.enact(delivery, deadLetter())
        const before = await rig.row(id)
        await batch.release()
        expect(await rig.row(id)).toEqual(before)
        const again = await rig.source().drain({ limit: 1 })
        expect(again.deadLetters.map((one) => one.delivery.id)).toEqual([id])
      }),
    )

    it(
      'finds unreleased dead letters again, and abandoned ones immediately',
      on(async (rig) => {
        const { id } = await givenUp(rig)
        const source = rig.source()
        const batch = await source.drain({ limit: 1 })
        expect(await source.depth()).toBe(1)
        await batch.abandon()
        const { deadLetters } = await source.drain({ limit: 1 })
        expect(deadLetters.map(({ delivery }) => delivery.id)).toEqual([id])
        await source.close()
        expect((await rig.source().drain({ limit: 1 })).deadLetters).toHaveLength(1)
      }),
    )
  })

  describe.concurrent('the view of dead letters', () => {
    it(
      'shows the most important columns of dead letters only',
      on(async (rig) => {
        const { transport, hand } = await rig.start({ limit: 10 })
        const [first, second, dropped, retried, done] = (await rig.addMany(5, (index) =>
          index === 0 ? EVENT : {},
        )) as [string, string, string, string, string]
        await hand.nth(5)
        const decisions = new Map<string, Decision>([
          [first, deadLetter(failedCycle(2))],
          [second, quarantine()],
          [dropped, drop()],
          [retried, retryIn(3_600_000)],
          [done, settle],
        ])
        for (const delivery of hand.deliveries) {
          await transport.enact(delivery, decisions.get(delivery.id) ?? settle)
        }
        const rows = await rig.query<Record<string, unknown>>(
          'select * from redrive.outbox_dead_letter where queue = $1 order by attempts desc',
          [rig.queue],
        )
        expect(rows.map(({ id }) => id)).toEqual([first, second])
        expect(rows[0]).toEqual({
          id: first,
          queue: rig.queue,
          type: 'order.placed',
          key: 'order-7',
          reason: 'attempts_exhausted',
          class: 'unknown',
          signature: 'v1-unknown',
          last_error: 'it broke',
          attempts: 2,
          first_failed_at: new Date(1_700_000_000_000),
          failed_at: expect.any(Date) as unknown,
          cycle_number: 1,
          generation: '0',
          lane: 'customer-1',
          headers: { tenant: 'x' },
        })
        expect(rows[1]).toMatchObject({ key: second, reason: 'same_failure_repeated' })
        expect(await rig.source().depth()).toBe(2)
        const { deadLetters } = await rig.source().drain({ limit: 10 })
        expect(deadLetters.map(({ quarantined }) => quarantined)).toEqual(
          deadLetters.map(({ delivery }) => delivery.id === second),
        )
      }),
    )

    it(
      'stores an error message without the characters that PostgreSQL rejects',
      on(async (rig) => {
        const id = await rig.add()
        await rig.consume(
          () => {
            throw new Error('NUL \0, half \ud800 and \u{1f680}')
          },
          { retry: { attempts: 1 } },
        )
        await rig.becomes(id, 'failed')
        const { last_error: error } = await rig.row(id)
        expect(error).toBe('NUL \ufffd, half \ufffd and \u{1f680}')
      }),
    )
  })
}
