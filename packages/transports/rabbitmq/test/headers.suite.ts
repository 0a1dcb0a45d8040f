import { describe, expect, it } from 'vitest'
import { deadLetterQueue } from '../src/index.ts'
import { type Rig, deadLetter, failedCycle, onRig, retryIn, until } from './rig.ts'

const KEPT = {
  messageId: 'm-1',
  type: 'paid',
  contentType: 'application/json',
  contentEncoding: 'gzip',
  correlationId: 'c-1',
  replyTo: 'answers',
  appId: 'shop',
  priority: 3,
  timestamp: 1_700_000_000,
} as const

/** One of every type that AMQP has for a header. */
const VALUES = {
  text: 'café €',
  empty: '',
  true: true,
  false: false,
  byte: -7,
  short: -300,
  int: 70_000,
  long: 2 ** 40,
  double: 0.1,
  nothing: null,
  bytes: Buffer.from([0, 255, 195, 40]),
  array: [1, 'two', [3, null], { four: 4 }],
  table: { deep: { deeper: { deepest: ['x', false] } } },
  moment: { '!': 'timestamp', value: 1_700_000_000 },
  price: { '!': 'decimal', value: { places: 2, digits: 1999 } },
} as const

export function headersOnTheWire(url: string): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('headers on the wire', () => {
    it(
      'every AMQP property survives retry, dead letter, drain and replay',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', { ...KEPT, headers: { mine: 'yes' } })
        expect(await transport.enact(await inbox.nth(1), retryIn(100))).toMatchObject({
          kind: 'done',
          place: 'retry',
        })
        const second = await inbox.nth(2)
        expect(second.raw.properties).toMatchObject(KEPT)
        expect(second).toMatchObject({ id: 'm-1', type: 'paid', cycle: { attempts: 1 } })
        await transport.enact(second, deadLetter())
        const source = rig.source()
        const batch = await source.drain({ most: 10 })
        expect(batch.deadLetters).toHaveLength(1)
        const [drained] = batch.deadLetters
        if (drained === undefined) return
        expect(drained.delivery).toMatchObject({ id: 'm-1', headers: { mine: 'yes' } })
        await source.publish({ deadLetter: drained, replayId: 'r-1' })
        await batch.release()
        const third = await inbox.nth(3)
        expect(third.raw.properties).toMatchObject(KEPT)
        expect(third).toMatchObject({ id: 'm-1', replayId: 'r-1', headers: { mine: 'yes' } })
        expect(Buffer.from(third.bytes).toString()).toBe('body')
        await transport.enact(third, { kind: 'settle', reason: 'handled' })
      }),
    )

    it(
      'header values of every AMQP type survive a retry',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', { headers: VALUES })
        const first = await inbox.nth(1)
        expect(first.headers).toEqual(VALUES)
        await transport.enact(first, retryIn(100))
        const second = await inbox.nth(2)
        expect(second.headers).toEqual(VALUES)
        expect(second.raw.properties.headers).toMatchObject(VALUES)
      }),
    )

    it(
      'the trace of the delay queue is not carried on',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body')
        for (let count = 1; count <= 3; count++) {
          const delivery = await inbox.nth(count)
          const deaths = delivery.raw.properties.headers?.['x-death']
          expect(deaths === undefined ? 0 : (deaths as unknown[]).length).toBe(count === 1 ? 0 : 1)
          expect(delivery.headers).toEqual({})
          await transport.enact(delivery, retryIn(100, failedCycle(count)))
        }
      }),
    )

    it(
      'a copy to others is made once, by the producer, and the handler still sees to whom',
      on(async (rig) => {
        const audit = `${rig.queue}-audit`
        await rig.makeQueue(audit)
        const { transport, inbox } = await rig.start()
        await rig.send('body', { CC: audit, expiration: '60000', userId: 'guest' })
        for (let count = 1; count <= 3; count++) {
          const delivery = await inbox.nth(count)
          expect(delivery.headers).toEqual({ CC: [audit] })
          await transport.enact(delivery, retryIn(100, failedCycle(count)))
        }
        const last = await inbox.nth(4)
        expect(last.headers).toEqual({ CC: [audit] })
        expect(last.raw.properties.expiration).toBeUndefined()
        await transport.enact(last, deadLetter())
        expect(await rig.count(audit)).toBe(1)
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
      }),
    )

    it(
      'a message without a name gets one that its retries keep',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body')
        const first = await inbox.nth(1)
        await transport.enact(first, retryIn(100))
        expect((await inbox.nth(2)).id).toBe(first.id)
      }),
    )

    it(
      'a producer that fills the headers is still dead-lettered, with less of our history',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const headers = { filler: 'x'.repeat(60 * 1_024), mine: 1 }
        await rig.send('body', { messageId: 'm-1', headers })
        const cycle = failedCycle(30, 'y'.repeat(200))
        const enactment = await transport.enact(await inbox.nth(1), deadLetter(cycle))
        expect(enactment).toMatchObject({ kind: 'done', place: 'dead_letter' })
        // 8 KiB of budget hold 30 short attempts, but not beside 60 KiB of someone else.
        expect(enactment).toHaveProperty('truncated', 30)
        const { properties } = await rig.take(deadLetterQueue(rig.queue))
        expect(properties.headers).toMatchObject({ ...headers, 'redrive-id': 'm-1' })
      }),
    )

    it(
      'where a topic exchange got it from stays known through several hand-offs',
      on(async (rig) => {
        const exchange = `${rig.queue}-events`
        await rig.makeExchange(exchange, 'topic')
        const { transport, inbox } = await rig.start()
        await rig.onChannel((channel) => channel.bindQueue(rig.queue, exchange, 'order.#'))
        await rig.publish(exchange, 'order.paid.eu', 'body')
        for (let count = 1; count <= 2; count++) {
          await transport.enact(await inbox.nth(count), retryIn(100, failedCycle(count)))
        }
        await transport.enact(await inbox.nth(3), deadLetter())
        const { deadLetters } = await rig.source().drain({ most: 1 })
        expect(deadLetters.map(({ envelope }) => envelope)).toMatchObject([
          { exchange, routingKey: 'order.paid.eu' },
        ])
      }),
    )

    it(
      'a header called __proto__ does not stop its message',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const headers = JSON.parse('{"__proto__": {"redrive-id": "forged"}, "mine": 1}') as object
        await rig.send('body', { messageId: 'm-1', headers })
        const first = await inbox.nth(1)
        expect(first.id).toBe('m-1')
        await transport.enact(first, retryIn(100))
        const second = await inbox.nth(2)
        expect(second.id).toBe('m-1')
        expect(second.headers).toMatchObject({ mine: 1 })
        await transport.enact(second, { kind: 'settle', reason: 'handled' })
        await until('an empty queue', async () => (await rig.count(rig.queue)) === 0)
      }),
    )
  })
}
