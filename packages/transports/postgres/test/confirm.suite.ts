import { ALREADY_HANDLED } from '@redrive/core/internal'
import type { ConfirmationBatch } from '@redrive/runtime'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { maintain, outbox, type PostgresDelivery } from '../src/index.ts'
import { ownDatabase } from './database.ts'
import {
  broken,
  deadLetter,
  drop,
  isEnacting,
  onRig,
  type Question,
  type Rig,
  type Started,
  type StartOptions,
  settle,
  until,
} from './rig.ts'

interface Confirmed {
  readonly replay_id: string
  readonly outcome: string
}

const confirmed = (rig: Rig) =>
  rig.query<Confirmed>(
    'select replay_id, outcome from redrive.replay_confirmation where queue = $1 order by replay_id',
    [rig.queue],
  )

/** Returns this number of events that failed and were replayed as r-0, r-1 and so on; in flight again, in that order. */
async function replayed(rig: Rig, count: number, options?: StartOptions): Promise<Replays> {
  const failing = await rig.start()
  await rig.addMany(count)
  await failing.hand.nth(count)
  await failing.transport.pause()
  for (const delivery of failing.hand.deliveries) {
    await failing.transport.enact(delivery, deadLetter())
  }
  const source = rig.source()
  const { deadLetters } = await source.drain({ limit: count })
  for (const [index, one] of deadLetters.entries()) {
    await source.publish({ deadLetter: one, replayId: `r-${index}` })
  }
  const started = await rig.start(options)
  await started.hand.nth(count)
  const replays = started.hand.deliveries.toSorted((one, other) =>
    String(one.replayId).localeCompare(String(other.replayId)),
  )
  return { ...started, replays }
}

interface Replays extends Started {
  readonly replays: readonly PostgresDelivery[]
}

const idsIn = ({ confirmations }: ConfirmationBatch) =>
  confirmations.map(({ replayId }) => replayId).sort()

export function confirming(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a finished replay', () => {
    it(
      'is confirmed with its outcome in the turn that ends it; other events are not',
      on(async (rig) => {
        const turns: Question[] = []
        const { transport, hand, replays } = await replayed(rig, 3, {
          hooks: { before: (question) => void (isEnacting(question) && turns.push(question)) },
        })
        await rig.add()
        const plain = await hand.nth(4)
        const [first, second, third] = replays as [
          PostgresDelivery,
          PostgresDelivery,
          PostgresDelivery,
        ]
        const answers = await Promise.all([
          transport.enact(plain, settle),
          transport.enact(first, settle),
          transport.enact(second, ALREADY_HANDLED),
          transport.enact(third, drop()),
        ])
        expect(answers.map((answer) => answer.kind === 'done' && answer.destination)).toEqual([
          'settled',
          'settled',
          'settled',
          'dropped',
        ])
        expect(turns, 'one statement for all four').toHaveLength(1)
        expect(turns[0]?.values[0], 'the plain one goes the plain way').toEqual([plain.id])
        expect(await confirmed(rig)).toEqual([
          { replay_id: 'r-0', outcome: 'handled' },
          { replay_id: 'r-1', outcome: 'already_handled' },
          { replay_id: 'r-2', outcome: 'dropped' },
        ])
        expect(await rig.row(first.id)).toMatchObject({
          status: 'delivered',
          due_at: null,
          lease_until: null,
          failed_at: null,
          deleted_at: null,
          delivered_at: expect.any(Date) as unknown,
        })
        expect(await rig.row(third.id)).toMatchObject({ status: 'failed', delivered_at: null })
      }),
    )

    it(
      'is confirmed once when the answer is lost and the change is sent again',
      on(async (rig) => {
        let isLosing = true
        const { transport, replays } = await replayed(rig, 1, {
          hooks: {
            after(question) {
              if (!isLosing || !isEnacting(question)) return
              isLosing = false
              throw broken()
            },
          },
        })
        const [delivery] = replays as [PostgresDelivery]
        expect(await transport.enact(delivery, settle)).toMatchObject({ kind: 'unknown' })
        const source = rig.source()
        const batch = await source.confirmations({ limit: 10 })
        expect(idsIn(batch)).toEqual(['r-0'])
        await batch.release()
        expect(await transport.enact(delivery, settle)).toMatchObject({ kind: 'done' })
        expect(await confirmed(rig), 'nothing is confirmed again').toEqual([])
      }),
    )

    it(
      'is not confirmed by a consumer that has lost its lease',
      on(async (rig) => {
        const { transport, replays } = await replayed(rig, 1)
        const [delivery] = replays as [PostgresDelivery]
        await transport.pause()
        await rig.expire(delivery.id)
        const other = await rig.start()
        const taken = await other.hand.nth(1)
        expect(await transport.enact(delivery, settle)).toEqual({ kind: 'lost' })
        expect(await confirmed(rig)).toEqual([])
        await other.transport.enact(taken, ALREADY_HANDLED)
        expect(await confirmed(rig)).toEqual([{ replay_id: 'r-0', outcome: 'already_handled' }])
      }),
    )

    it(
      'cannot be claimed between its confirmation and its end',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        await own.query(`create function public.wait() returns trigger language plpgsql as $$
          begin perform pg_advisory_xact_lock(7); return new; end $$;
          create trigger wait before insert on redrive.replay_confirmation for each row execute function public.wait()`)
        const id = await outbox({ queue: rig.queue }).add(own, { body: 1 })
        const { transport, hand } = await rig.start({ pool: own })
        await transport.enact(await hand.nth(1), deadLetter())
        await own.query(`select redrive.outbox_replay($1, 1, 'me')`, [id])
        const delivery = await hand.nth(2)
        const holder = await own.connect()
        await holder.query('select pg_advisory_lock(7)')
        const ending = transport.enact(delivery, settle)
        await until('it is being confirmed', async () => {
          const waiting = `select from pg_locks where locktype = 'advisory' and objid = 7 and not granted`
          return (await own.query(waiting)).rows.length === 1
        })
        const take = 'select id from redrive.outbox where id = $1 for no key update skip locked'
        expect((await own.query(take, [id])).rows).toEqual([])
        await holder.query('select pg_advisory_unlock(7)')
        holder.release()
        expect(await ending).toMatchObject({ kind: 'done' })
        await transport.close()
      }),
    )

    it(
      'is not finished when it cannot be confirmed',
      on(async (rig) => {
        const { transport, replays } = await replayed(rig, 1)
        const [delivery] = replays as [PostgresDelivery]
        // Like an outcome of a later release.
        const change = { id: delivery.id, token: delivery.token, place: 'delivered', outcome: 'x' }
        const asked = rig.query(
          `select redrive.outbox_turn('{}', '{}', $1::jsonb, $2, 0, 1000, '-infinity', null)`,
          [JSON.stringify([change]), rig.queue],
        )
        await expect(asked).rejects.toMatchObject({ code: '23514' })
        expect(await rig.row(delivery.id)).toMatchObject({ status: 'in_flight' })
        await transport.enact(delivery, settle)
      }),
    )
  })

  describe.concurrent('confirmations', () => {
    it(
      'are returned to one of two control planes, with their time',
      on(async (rig) => {
        const { transport, replays } = await replayed(rig, 4)
        const before = Date.now()
        for (const one of replays) await transport.enact(one, settle)
        const batches = [
          await rig.source().confirmations({ limit: 3 }),
          await rig.source().confirmations({ limit: 3 }),
        ]
        expect(batches.map(({ confirmations }) => confirmations.length)).toEqual([3, 1])
        expect(batches.flatMap(idsIn).sort()).toEqual(['r-0', 'r-1', 'r-2', 'r-3'])
        const times = batches.flatMap(({ confirmations }) => confirmations.map(({ at }) => at))
        for (const at of times) expect(Math.abs(at - before)).toBeLessThan(60_000)
      }),
    )

    it(
      'are returned again after a control plane crashed, which cannot delete them any more',
      on(async (rig) => {
        const { transport, replays } = await replayed(rig, 2)
        for (const one of replays) await transport.enact(one, settle)
        const dead = await rig.source().confirmations({ limit: 10 })
        expect(idsIn(await rig.source().confirmations({ limit: 10 }))).toEqual([])
        // Its lease has expired.
        await rig.query(
          `update redrive.replay_confirmation set lease_until = now() - interval '1 ms' where queue = $1`,
          [rig.queue],
        )
        const next = await rig.source().confirmations({ limit: 10 })
        expect(idsIn(next)).toEqual(['r-0', 'r-1'])
        await dead.release()
        await dead.abandon()
        expect(await confirmed(rig)).toHaveLength(2)
        expect(idsIn(await rig.source().confirmations({ limit: 10 }))).toEqual([])
        await next.release()
        expect(await confirmed(rig)).toEqual([])
      }),
    )

    it(
      'of another queue are not changed',
      on(async (rig) => {
        const { transport, replays } = await replayed(rig, 1)
        for (const one of replays) await transport.enact(one, settle)
        await rig.query(
          `insert into redrive.replay_confirmation (queue, replay_id, outcome) values ($1, 'r-0', 'handled')`,
          [`${rig.queue}-other`],
        )
        const batch = await rig.source().confirmations({ limit: 10 })
        expect(idsIn(batch)).toEqual(['r-0'])
        await batch.release()
        const left = await rig.query(
          'delete from redrive.replay_confirmation where queue like $1 returning queue',
          [`${rig.queue}%`],
        )
        expect(left).toEqual([{ queue: `${rig.queue}-other` }])
      }),
    )

    it(
      'that are not read are deleted after 30 days',
      on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        await own.query(
          `insert into redrive.replay_confirmation (queue, replay_id, outcome, confirmed_at)
           values ('q', 'old', 'handled', now() - interval '31 days'), ('q', 'young', 'handled', now() - interval '29 days')`,
        )
        await maintain(own, { deliveredRetention: '2d', deadLetterRetention: '14d' })
        const { rows } = await own.query('select replay_id from redrive.replay_confirmation')
        expect(rows).toEqual([{ replay_id: 'young' }])
      }),
    )

    it(
      'are also stored for replays from psql',
      on(async (rig) => {
        const { transport, hand } = await rig.start()
        const id = await rig.add()
        await transport.enact(await hand.nth(1), deadLetter())
        await rig.query(`select redrive.outbox_replay($1, 1, 'me@example.com')`, [id])
        const again = await hand.nth(2)
        await transport.enact(again, settle)
        await until('it', async () => (await confirmed(rig)).length === 1)
        expect(await confirmed(rig)).toEqual([{ replay_id: again.replayId, outcome: 'handled' }])
      }),
    )
  })
}
