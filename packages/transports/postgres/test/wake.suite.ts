import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { outbox } from '../src/index.ts'
import { isTurn, mostOf, onRig, type Rig, type Started, settle, until } from './rig.ts'
import { poolOn } from './services.ts'

/** 200 ms: shorter than the wait of an idle consumer. */
const AT_ONCE_MS = 200

/** A consumer, and a function that waits until its last claim was empty and its next one is far away. */
async function idler(rig: Rig, url: string, isListening = true) {
  const looks: { readonly at: number; readonly isVain: boolean }[] = []
  const own = rig.ownPool(url)
  const started = await rig.start({
    pool: own,
    listen: isListening,
    hooks: {
      after(question, rows) {
        if (!isTurn(question) || mostOf(question) === 0) return
        looks.push({ at: performance.now(), isVain: rows.length === 0 })
      },
    },
  })
  const idle = async () => {
    await until('an idle consumer', () => {
      const [last, before] = [looks.at(-1), looks.at(-2)]
      if (last?.isVain !== true || before?.isVain !== true) return false
      return last.at - before.at > AT_ONCE_MS
    })
    const seen = looks.length
    await until('it has just looked', () => looks.length > seen)
  }
  return { ...started, own, idle }
}

/** Returns the best of three, to ignore the load of the machine. */
async function bestLatency(rig: Rig, consumer: Idler): Promise<number> {
  const took: number[] = []
  for (let times = 0; times < 3; times++) {
    await consumer.idle()
    took.push(await latency(rig, consumer))
  }
  return Math.min(...took)
}

type Idler = Awaited<ReturnType<typeof idler>>

/** Returns the time until the next event arrives after it was added and notified. */
async function latency(rig: Rig, { transport, hand }: Started): Promise<number> {
  const count = hand.deliveries.length + 1
  await rig.add()
  const addedAt = performance.now()
  rig.outbox.wake()
  await transport.enact(await hand.nth(count), settle)
  return (hand.arrivedAt[count - 1] ?? 0) - addedAt
}

const LISTEN = 'listen %'

export function waking(url: string, pool: Pool): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(pool, test)

  describe.concurrent('wake', () => {
    it(
      'reaches a consumer that waits',
      on(async (rig) => {
        const consumer = await idler(rig, url)
        expect(await bestLatency(rig, consumer)).toBeLessThan(AT_ONCE_MS)
      }),
    )

    it(
      'reaches every queue of a pool over one connection, which closes with the last queue',
      on(async (rig) => {
        const own = rig.ownPool(url)
        const other = `${rig.queue}-other`
        const first = await rig.start({ pool: own, listen: true })
        const second = await rig.start({ pool: own, listen: true, queue: other })
        await until('a listener', async () => (await rig.backends(LISTEN)).length > 0)
        await first.transport.close()
        const others = outbox({ queue: other, pool })
        await others.add(pool, { body: 1 })
        others.wake()
        await second.transport.enact(await second.hand.nth(1), settle)
        expect(await rig.backends(LISTEN)).toHaveLength(1)
        await second.transport.close()
        await until('no listener', async () => (await rig.backends(LISTEN)).length === 0)
        await rig.query('delete from redrive.outbox where queue = $1', [other])
      }),
    )

    it(
      'combines a thousand concurrent calls, and sends a later one separately',
      on(async (rig) => {
        const heard: string[] = []
        const client = await rig.connect()
        client.on('notification', ({ payload = '' }) => heard.push(payload))
        await client.query('listen redrive_outbox')
        const heardOfUs = () => heard.filter((queue) => queue === rig.queue).length
        for (let count = 0; count < 1_000; count++) rig.outbox.wake()
        await until('the first', () => heardOfUs() > 0)
        // Sent later, so it arrives after all earlier notifications.
        await rig.query(`select pg_notify('redrive_outbox', 'end')`)
        await until('the end', () => heard.includes('end'))
        expect(heardOfUs()).toBe(1)
        rig.outbox.wake()
        await until('the second', () => heardOfUs() === 2)
      }),
    )

    it(
      'works again after the listening connection ended, including missed notifications',
      on(async (rig) => {
        const consumer = await idler(rig, url)
        await until('a listener', async () => (await rig.backends(LISTEN)).length > 0)
        const killed = await rig.backends(LISTEN)
        await rig.kill(killed)
        const isNew = (pid: number) => !killed.includes(pid)
        await until('another listener', async () => (await rig.backends(LISTEN)).some(isNew))
        expect(await bestLatency(rig, consumer)).toBeLessThan(AT_ONCE_MS)
      }),
    )

    it(
      'is optional: without it, and without listening, an event is found by polling',
      on(async (rig) => {
        const consumer = await idler(rig, url, false)
        await consumer.idle()
        const id = await rig.add()
        expect((await consumer.hand.nth(1, { timeout: 3_000 })).id).toBe(id)
        expect(await rig.backends(LISTEN)).toEqual([])
      }),
    )

    it(
      'does not fail the caller without a pool or with a closed one',
      on(async (rig) => {
        const ended = poolOn(url, 1)
        await ended.end()
        const { hand } = await rig.start()
        for (const options of [{ pool: ended }, {}]) {
          expect(outbox({ queue: rig.queue, ...options }).wake()).toBeUndefined()
        }
        const id = await rig.add()
        expect((await hand.nth(1)).id).toBe(id)
      }),
    )
  })

  describe.concurrent('a pool whose connections are all in use', () => {
    it(
      'loses no added, in-flight or finished event',
      on(async (rig) => {
        const own = rig.ownPool(url, 4)
        const { transport, hand } = await rig.start({ pool: own, listen: true })
        await rig.add()
        const delivery = await hand.nth(1)
        await until('a listener', async () => (await rig.backends(LISTEN)).length === 1)
        const busy = await Promise.all([own.connect(), own.connect(), own.connect()])
        const ids = await rig.addMany(20)
        rig.outbox.wake()
        const settling = Promise.resolve(transport.enact(delivery, settle))
        await until('it waits for a connection', () => own.waitingCount > 0)
        expect(hand.deliveries).toHaveLength(1)
        for (const client of busy) client.release()
        expect(await settling).toMatchObject({ kind: 'done', destination: 'settled' })
        await hand.nth(21)
        expect(hand.ids.slice(1).sort()).toEqual([...ids].sort())
        expect(hand.deliveries.every(({ deliveryCount }) => deliveryCount === 1)).toBe(true)
      }),
    )

    it(
      'starts listening when a connection is free',
      on(async (rig) => {
        const own = rig.ownPool(url, 4)
        const transport = rig.transport({ pool: own, listen: true })
        await transport.open()
        const busy = await Promise.all([1, 2, 3, 4].map(() => own.connect()))
        transport.receive({ deliver: () => undefined, lost: () => undefined })
        await until('both wait', () => own.waitingCount >= 2)
        for (const client of busy) client.release()
        await until('a listener', async () => (await rig.backends(LISTEN)).length > 0)
        expect(await rig.backends(LISTEN)).toHaveLength(1)
      }),
    )
  })
}
