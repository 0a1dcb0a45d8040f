import { describe, expect, it } from 'vitest'
import { deadLetterQueue } from '../src/index.ts'
import { type Rig, deadLetter, failedCycle, onRig, retryIn, until } from './rig.ts'
import { bytesOfNext } from './wire-bytes.ts'

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

/** One value of every AMQP header type. */
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

/** Numbers with types that amqplib would not choose, and their bytes: the name with its length, the tag, the value. */
const TYPED = {
  int64: { '!': 'int64', value: 5 },
  int32: { '!': 'int32', value: 6 },
  double: { '!': 'double', value: 2 },
  float: { '!': 'float', value: 1.5 },
  moment: { '!': 'timestamp', value: 1_700_000_000 },
  nested: { list: [1, { '!': 'int64', value: 7 }] },
} as const

const TYPED_FIELDS = {
  int64: Buffer.from('\x05int64l\0\0\0\0\0\0\0\x05', 'latin1'),
  int32: Buffer.from('\x05int32I\0\0\0\x06', 'latin1'),
  double: Buffer.from('\x06doubled\x40\0\0\0\0\0\0\0', 'latin1'),
  float: Buffer.from('\x05floatf\x3f\xc0\0\0', 'latin1'),
  moment: Buffer.from('\x06momentT\0\0\0\0\x65\x53\xf1\0', 'latin1'),
  nested: Buffer.from('\x04listA\0\0\0\x0bb\x01l\0\0\0\0\0\0\0\x07', 'latin1'),
}

export function headersOnTheWire(url: string): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('headers of published messages', () => {
    it(
      'keep every AMQP property through retry, dead letter, drain and replay',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', { ...KEPT, headers: { mine: 'yes' } })
        expect(await transport.enact(await inbox.nth(1), retryIn(100))).toMatchObject({
          kind: 'done',
          destination: 'retry',
        })
        const second = await inbox.nth(2)
        expect(second.raw.properties).toMatchObject(KEPT)
        expect(second).toMatchObject({ id: 'm-1', type: 'paid', cycle: { attempts: 1 } })
        await transport.enact(second, deadLetter())
        const source = rig.source()
        const batch = await source.drain({ limit: 10 })
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
      'keep the AMQP type of every number through retry, dead letter, drain and replay',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', { messageId: 'm-1', headers: TYPED })
        const first = await inbox.nth(1)
        expect(first.headers).toMatchObject({ int64: 5, double: 2, nested: { list: [1, 7] } })
        await transport.enact(first, retryIn(100))
        const second = await inbox.nth(2)
        await transport.pause()
        await transport.enact(second, deadLetter())
        const [drained] = (await rig.source().drain({ limit: 1 })).deadLetters
        if (drained === undefined) throw new Error('nothing was drained')
        const envelope = JSON.parse(JSON.stringify(drained.envelope)) as Record<string, string>
        await rig.source().publish({ deadLetter: { ...drained, envelope }, replayId: 'r-1' })
        const received = await bytesOfNext(rig, rig.queue)
        const missing = Object.entries(TYPED_FIELDS).filter(
          ([, field]) => !received.includes(field),
        )
        expect(missing).toEqual([])
      }),
    )

    it(
      'keep values of every AMQP type through a retry',
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
      'do not contain the x-death of the delay queue',
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
      'route CC and BCC once, for the producer, and still show them to the handler',
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
      'give a message without an id an id that its retries keep',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body')
        const first = await inbox.nth(1)
        await transport.enact(first, retryIn(100))
        expect((await inbox.nth(2)).id).toBe(first.id)
      }),
    )

    it(
      'shorten the history of a dead letter when the producer fills the headers',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const headers = { filler: 'x'.repeat(60 * 1_024), mine: 1 }
        await rig.send('body', { messageId: 'm-1', headers })
        const cycle = failedCycle(30, 'y'.repeat(200))
        const enactment = await transport.enact(await inbox.nth(1), deadLetter(cycle))
        expect(enactment).toMatchObject({ kind: 'done', destination: 'dead_letter' })
        // A budget of 8 KiB holds 30 short attempts, but not together with 60 KiB of other headers.
        expect(enactment).toHaveProperty('truncated', 30)
        const { properties } = await rig.take(deadLetterQueue(rig.queue))
        expect(properties.headers).toMatchObject({ ...headers, 'redrive-id': 'm-1' })
      }),
    )

    it(
      'keep the routing key of a topic exchange through several hand-offs',
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
        const { deadLetters } = await rig.source().drain({ limit: 1 })
        expect(deadLetters.map(({ envelope }) => envelope)).toMatchObject([
          { exchange, routingKey: 'order.paid.eu' },
        ])
      }),
    )

    it(
      'may contain a header named __proto__',
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
