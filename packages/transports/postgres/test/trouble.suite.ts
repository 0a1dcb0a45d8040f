import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Decision } from '@redrive/core'
import type { Pool, PoolClient } from 'pg'
import { describe, expect, it } from 'vitest'
import { postgresInbox } from '../src/index.ts'
import { ownDatabase } from './database.ts'
import {
  broken,
  DECISIONS,
  deadLetter,
  drop,
  giveBack,
  HOUR_MS,
  type Hooks,
  isEnacting,
  isKeep,
  isTurn,
  mostOf,
  onRig,
  type Question,
  quarantine,
  type Rig,
  refusal,
  retryIn,
  settle,
  until,
} from './rig.ts'

const UNKNOWN = { kind: 'unknown' }
const LOST = { kind: 'lost' }
const DONE = { kind: 'done' }
/** 60 s: a handler whose connection hangs is ended by its timeout of 30 s, and its event comes again. */
const SLOW_MS = 60_000

/** The server behind a proxy that sends the greeting and the close in one packet. */
async function doomedWire(url: string, kill: () => Promise<void>) {
  const { hostname, port } = new URL(url)
  let isFirst = true
  const server = createServer((inner) => {
    const outer = connect(Number(port), hostname)
    for (const socket of [inner, outer]) socket.on('error', () => undefined)
    inner.pipe(outer)
    if (!isFirst) return void outer.pipe(inner)
    isFirst = false
    const held: Buffer[] = []
    outer.on('data', (bytes) => {
      held.push(bytes)
      // Ready for the first query.
      if (held.length === 1) void kill()
    })
    outer.on('end', () => inner.end(Buffer.concat(held)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: ownPort } = server.address() as { port: number }
  const own = Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(ownPort) })
  return {
    url: own.href,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

export function troubles(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('a server connection without the prepared statement', () => {
    it.each(['26000', '42P05', '0A000'])(
      'with the error %s makes consumers of the pool send texts',
      async (code) => {
        await on(async (rig) => {
          const named: boolean[] = []
          const hooks: Hooks = {
            before(question) {
              if (!isTurn(question)) return
              named.push('name' in question)
              if ('name' in question) {
                throw Object.assign(new Error('no statement'), { code, severity: 'ERROR' })
              }
            },
          }
          const { transport, hand } = await rig.start({ hooks, listen: true })
          await rig.add()
          expect(await transport.enact(await hand.nth(1), settle)).toMatchObject({ kind: 'done' })
          expect(named.slice(0, 2)).toEqual([true, false])
          expect(named.slice(1)).not.toContain(true)
          expect(rig.unheard).toEqual([])
        })()
      },
    )

    it(
      'is never a problem without "listen", because nothing is prepared',
      on(async (rig) => {
        const named: boolean[] = []
        const hooks: Hooks = { before: (question) => void named.push('name' in question) }
        const { transport, hand } = await rig.start({ hooks, listen: false })
        await rig.add()
        expect(await transport.enact(await hand.nth(1), settle)).toMatchObject({ kind: 'done' })
        expect(named).not.toContain(true)
      }),
    )
  })

  describe.concurrent('a lost answer', () => {
    /** Loses the answer to the first enactment, or the enactment itself. */
    const losing = (when: 'before' | 'after'): Hooks => {
      let isLosing = true
      return {
        [when](question: Question) {
          if (!isLosing || !isEnacting(question)) return
          isLosing = false
          throw broken()
        },
      }
    }
    const cases = DECISIONS.flatMap(([name, decision, status]) => [
      [name, 'had arrived', 'after', decision, status] as const,
      [name, 'had not arrived', 'before', decision, status] as const,
    ]).filter(([name]) => name !== 'return')

    it.each(cases)('makes a %s that %s unknown, and done when it is repeated', async (...the) => {
      const [, , when, decision, status] = the
      await on(async (rig) => {
        const id = await rig.add()
        const { transport, hand } = await rig.start({ limit: 1, hooks: losing(when) })
        const delivery = await hand.nth(1)
        expect(await transport.enact(delivery, decision)).toMatchObject(UNKNOWN)
        const between = await rig.row(id)
        expect(between.status).toBe(when === 'after' ? status : 'in_flight')
        expect(await transport.enact(delivery, decision)).toMatchObject(DONE)
        const row = await rig.row(id)
        expect(row).toEqual(when === 'after' ? between : { ...row, status })
        expect(row.lease_until).toBeNull()
        expect(await transport.enact(delivery, decision)).toMatchObject(LOST)
      })()
    })

    it(
      'makes a delivery lost when another consumer has claimed it',
      on(async (rig) => {
        const id = await rig.add()
        const { transport, hand } = await rig.start({ limit: 1, hooks: losing('before') })
        const delivery = await hand.nth(1)
        expect(await transport.enact(delivery, settle)).toMatchObject(UNKNOWN)
        await rig.expire(id)
        const second = await rig.start({ limit: 1 })
        await second.hand.nth(1)
        const before = await rig.row(id)
        expect(await transport.enact(delivery, settle)).toMatchObject(LOST)
        expect(await rig.row(id)).toEqual(before)
      }),
    )

    it(
      'keeps a finished row finished after a heartbeat',
      on(async (rig) => {
        let keeps = 0
        const lost = losing('after')
        const { transport, hand } = await rig.start({
          lease: '5s',
          hooks: {
            async after(question, rows) {
              if (isKeep(question)) keeps += 1
              await lost.after?.(question, rows)
            },
          },
        })
        await rig.add()
        const delivery = await hand.nth(1)
        await until('a heartbeat', () => keeps >= 1)
        expect(await transport.enact(delivery, settle)).toMatchObject(UNKNOWN)
        const before = keeps
        await until('another', () => keeps > before)
        expect(await transport.enact(delivery, settle)).toMatchObject(DONE)
        expect(hand.lostOnes).toEqual([])
      }),
    )

    it(
      'is reported once as a lost and once as a restored connection',
      on(async (rig) => {
        let isDown = false
        const events = rig.events()
        const before = (question: Question) => {
          if (isDown && isTurn(question) && mostOf(question) > 0) throw broken()
        }
        const { hand } = await rig.start({ hooks: { before } })
        await rig.add()
        await hand.nth(1)
        isDown = true
        const count = (type: string) => events.filter((event) => event.type === type).length
        await until('trouble', () => count('connection_lost') > 0)
        isDown = false
        await rig.add()
        await hand.nth(2)
        expect([count('connection_lost'), count('connection_restored')]).toEqual([1, 1])
      }),
    )
  })

  describe.concurrent('one row that the server rejects', () => {
    const refused: readonly (readonly [string, Decision, string])[] = [
      ['completions', settle, 'delivered'],
      ['retries', retryIn(HOUR_MS), 'pending'],
      ['dead letters', deadLetter(), 'failed'],
    ]
    it.each(refused)('does not block the %s of the others', async (_, decision, status) => {
      await on(async (rig) => {
        const { pool: own } = await ownDatabase(rig, url)
        await own.query(`
          create function public.refuse() returns trigger language plpgsql as $$
            begin if new.key = 'bad' and new.status <> 'in_flight' then raise 'refused'; end if; return new; end $$;
          create trigger refuse before update on redrive.outbox for each row execute function public.refuse()`)
        const { transport, hand } = await rig.start({ pool: own })
        const events = Array.from({ length: 10 }, (__, index) => ({
          body: index,
          key: index === 4 ? 'bad' : `good-${index}`,
        }))
        await rig.outbox.addMany(own, events)
        await hand.nth(10)
        const answers = await Promise.all(
          hand.deliveries.map(async (one) => ({
            key: one.key,
            answer: await transport.enact(one, decision),
          })),
        )
        for (const { key, answer } of answers) {
          expect(answer).toMatchObject(
            key === 'bad' ? { kind: 'refused', error: { message: 'refused' } } : DONE,
          )
        }
        const { rows } = await own.query('select key from redrive.outbox where status = $1', [
          status,
        ])
        expect(rows).toHaveLength(9)
        await rig.outbox.add(own, { body: 11 })
        await hand.nth(11)
        // The trigger is not dropped: this needs locks that claims take in another order.
        await own.query(
          'create or replace function public.refuse() returns trigger language plpgsql as $$ begin return new; end $$',
        )
        const bad = hand.deliveries.find(({ key }) => key === 'bad')
        if (bad === undefined) throw new Error('no bad one')
        expect(await transport.enact(bad, decision)).toMatchObject(DONE)
      })()
    })
  })

  describe.concurrent('a server that is not usable', () => {
    it.each([
      ['is read-only, like a former primary', '25006'],
      ['shuts down', '57P01'],
    ])('is not used again over the same connection when it %s', async (_, code) => {
      await on(async (rig) => {
        const own = rig.ownPool(url)
        let removed = 0
        own.on('remove', () => void (removed += 1))
        let isUseless = false
        const { transport, hand } = await rig.start({
          pool: own,
          hooks: {
            before(question) {
              if (!isUseless || !isEnacting(question)) return
              throw Object.assign(new Error('of no use'), { code, severity: 'ERROR' })
            },
          },
        })
        await rig.addMany(3)
        await hand.nth(3)
        await transport.pause()
        isUseless = true
        const answers = await Promise.all(
          hand.deliveries.map(async (one) => transport.enact(one, settle)),
        )
        expect(answers.map(({ kind }) => kind)).toEqual(['unknown', 'unknown', 'unknown'])
        await until('the connection has gone', () => removed > 0)
        isUseless = false
        for (const one of hand.deliveries) {
          expect(await transport.enact(one, settle)).toMatchObject(DONE)
        }
      })()
    })
  })

  describe.concurrent('connections that end at any time', () => {
    it(
      'lose nothing, and an inbox makes each effect happen once',
      on(async (rig) => {
        const COUNT = 300
        const own = rig.ownPool(url, 12)
        const transport = rig.transport({ pool: own, lease: '1s', listen: true })
        let runs = 0
        await rig.consume<PoolClient>(
          async ({ body }, { tx }) => {
            runs += 1
            await tx.query('insert into public.effect values ($1, $2)', [rig.queue, body])
          },
          { transport, inbox: postgresInbox({ pool: own }) },
        )
        await rig.addMany(COUNT)
        let killedAt = 0
        let kills = 0
        await until(
          'all delivered',
          async () => {
            if (runs >= killedAt + 30 && kills < 12) {
              killedAt = runs
              kills += 1
              await rig.kill(await rig.backends())
            }
            return rig.query<{ status: string; count: number }>(
              `select status, count(*)::integer, max(attempts) as attempts, min(due_at) - now() as due,
                min(lease_until) - now() as lease from redrive.outbox where queue = $1 group by status`,
              [rig.queue],
            )
          },
          {
            timeout: SLOW_MS,
            accept: (seen) => seen.some((one) => one.status === 'delivered' && one.count === COUNT),
          },
        )
        const [effects] = await rig.query(
          'select count(*)::integer as all, count(distinct number)::integer as different from public.effect where name = $1',
          [rig.queue],
        )
        expect(effects).toEqual({ all: COUNT, different: COUNT })
        expect(rig.unheard).toEqual([])
        expect(kills).toBeGreaterThan(3)
      }),
      SLOW_MS + 30_000,
    )

    it(
      'do not end the process when they end while connecting',
      on(async (rig) => {
        const wire = await doomedWire(url, () => rig.backends().then((pids) => rig.kill(pids)))
        rig.atEnd(() => wire.close())
        const own = rig.ownPool(wire.url)
        const transport = rig.transport({ pool: own })
        expect(await refusal(transport.open())).toBeInstanceOf(Error)
        await expect(transport.open()).resolves.toBeUndefined()
        expect(rig.unheard).toEqual([])
      }),
    )

    it(
      'do not stop hand-offs and heartbeats, which use the next connection',
      on(async (rig) => {
        const own = rig.ownPool(url)
        let keeps = 0
        const hooks: Hooks = { after: (question) => void (keeps += isKeep(question) ? 1 : 0) }
        const { transport, hand } = await rig.start({ pool: own, lease: '5s', hooks })
        const ids = await rig.addMany(6)
        await hand.nth(6)
        await rig.kill(await rig.backends())
        const before = keeps
        await until('a heartbeat', () => keeps > before)
        const decisions = [settle, retryIn(HOUR_MS), deadLetter(), quarantine(), drop(), giveBack]
        await transport.pause()
        for (const [index, decision] of decisions.entries()) {
          const delivery = hand.deliveries.find(({ id }) => id === ids[index])
          if (delivery === undefined) throw new Error('not delivered')
          await rig.kill(await rig.backends())
          await until(`${decision.kind}`, async () => {
            const { kind } = await transport.enact(delivery, decision)
            return kind === 'done'
          })
        }
        const rows = await rig.rows()
        expect(rows.map(({ status, attempts }) => [status, attempts])).toEqual([
          ['delivered', 0],
          ['pending', 1],
          ['failed', 1],
          ['failed', 1],
          ['failed', 1],
          ['pending', 0],
        ])
      }),
    )
  })
}
