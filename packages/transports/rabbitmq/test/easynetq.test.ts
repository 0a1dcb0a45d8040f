import { urlsOf } from '@redrive/dev-support'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { ConsumeMessage, GetMessage } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { unwrapEasyNetQ } from '../src/easynetq.ts'
import { onRig, type Rig } from './rig.ts'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')

const TYPE = 'EasyNetQ.SystemMessages.Error, EasyNetQ'
const EXCEPTION = `System.InvalidOperationException: Order 17 is closed
 ---> System.TimeoutException: The operation has timed out.
   at Shop.Stock.Reserve(Order order) in /src/Shop/Stock.cs:line 42
   --- End of inner exception stack trace ---
   at Shop.OrderHandler.Handle(Order order) in /src/Shop/OrderHandler.cs:line 17`

const PROPERTIES = {
  ContentType: null,
  ContentEncoding: null,
  Headers: { tenant: 'Zoë', retries: 3, trace: null },
  DeliveryMode: 2,
  Priority: 0,
  CorrelationId: '14a6caf0-68f1-42de-b0b6-461a0dca4473',
  ReplyTo: null,
  Expiration: null,
  MessageId: null,
  Timestamp: 1_700_000_000,
  Type: 'Shop.Order, Shop',
  UserId: null,
  AppId: 'shop',
  ClusterId: null,
  ContentTypePresent: false,
  HeadersPresent: true,
  DeliveryModePresent: true,
  PriorityPresent: false,
  CorrelationIdPresent: true,
  TimestampPresent: true,
  TypePresent: true,
  AppIdPresent: true,
}

/** Returns the body of an error message, as EasyNetQ writes it. */
const errorOf = (queue: string, changed: Readonly<Record<string, unknown>> = {}) =>
  JSON.stringify({
    RoutingKey: 'order.paid',
    Exchange: 'shop-events',
    Queue: queue,
    Exception: EXCEPTION,
    Message: '{"order":17,"name":"Zoë"}',
    DateTime: '2026-11-14T23:44:05.1234567Z',
    BasicProperties: PROPERTIES,
    ...changed,
  })

/** Stores error messages in an error queue. */
async function errors(rig: Rig, ...bodies: readonly (string | Buffer)[]) {
  const errorQueue = `${rig.queue}-errors`
  await rig.makeQueue(errorQueue)
  await rig.makeQueue(rig.queue)
  for (const body of bodies)
    await rig.publish('', errorQueue, body, { type: TYPE, persistent: true })
  const source = rig.source({ deadLetterQueues: [errorQueue] })
  return { errorQueue, source }
}

async function drained(rig: Rig, source: ReturnType<Rig['source']>): Promise<DrainedDeadLetter> {
  const batch = await source.drain({ limit: 1 })
  await batch.release()
  const [letter] = batch.deadLetters
  if (letter === undefined) throw new Error(`nothing was drained from the errors of ${rig.queue}`)
  return letter
}

const ownHeaders = ({ properties }: GetMessage) =>
  Object.fromEntries(
    Object.entries(properties.headers ?? {}).filter(([name]) => !name.startsWith('redrive-')),
  )

describe.concurrent('an error message of EasyNetQ', () => {
  it(
    'is drained as the message that failed, and replayed with its body, headers and properties',
    onRig(url, async (rig) => {
      const { source } = await errors(rig, errorOf(rig.queue))
      const letter = await drained(rig, source)
      expect(letter).toMatchObject({
        origin: rig.queue,
        reason: 'easynetq_failed',
        identity: 'generated',
        envelope: { exchange: 'shop-events', routingKey: 'order.paid' },
        delivery: {
          type: 'Shop.Order, Shop',
          headers: PROPERTIES.Headers,
          cycle: {
            attempts: 1,
            firstFailedAt: Date.parse('2026-11-14T23:44:05.123Z'),
            history: [{ type: 'System.InvalidOperationException', message: 'Order 17 is closed' }],
          },
        },
      })
      expect(Buffer.from(letter.delivery.bytes).toString()).toBe('{"order":17,"name":"Zoë"}')

      await source.publish({ deadLetter: letter, replayId: 'r-1' })
      const replay = await rig.take(rig.queue)
      expect(replay.content.toString()).toBe('{"order":17,"name":"Zoë"}')
      expect(ownHeaders(replay)).toEqual(PROPERTIES.Headers)
      expect(replay.properties).toMatchObject({
        type: 'Shop.Order, Shop',
        appId: 'shop',
        correlationId: PROPERTIES.CorrelationId,
        timestamp: 1_700_000_000,
        priority: undefined,
        contentType: undefined,
      })
      expect(replay.properties.headers).toMatchObject({ 'redrive-replay-id': 'r-1' })
    }),
  )

  it(
    'is recognised as the replay when it fails again',
    onRig(url, async (rig) => {
      const { source, errorQueue } = await errors(rig, errorOf(rig.queue))
      const first = await drained(rig, source)
      await source.publish({ deadLetter: first, replayId: 'r-1' })
      const { properties, content } = await rig.take(rig.queue)
      // EasyNetQ keeps all headers of the failed message.
      const again = errorOf(rig.queue, {
        ...{ Exchange: '', RoutingKey: rig.queue, Message: content.toString() },
        BasicProperties: { ...PROPERTIES, Headers: properties.headers },
      })
      await rig.publish('', errorQueue, again, { type: TYPE })
      const second = await drained(rig, source)
      expect(second).toMatchObject({
        reason: 'easynetq_failed',
        identity: 'stable',
        envelope: { exchange: 'shop-events', routingKey: 'order.paid' },
        delivery: { id: first.delivery.id, replayId: 'r-1', cycle: { number: 2, attempts: 1 } },
      })
      expect(second.delivery.headers).toEqual(first.delivery.headers)
      expect(second.delivery.bytes).toEqual(first.delivery.bytes)
    }),
  )

  it(
    'is put back as the error message',
    onRig(url, async (rig) => {
      const { source, errorQueue } = await errors(rig, errorOf(rig.queue))
      await source.putBack([await drained(rig, source)])
      const { content, properties } = await rig.take(errorQueue)
      expect(content.toString()).toBe(errorOf(rig.queue))
      expect(properties).toMatchObject({ type: TYPE, deliveryMode: 2, appId: undefined })
      expect(properties.headers ?? {}).toEqual({})
    }),
  )

  it(
    'of an old release has no queue and belongs to the queue of the source',
    onRig(url, async (rig) => {
      const { source } = await errors(
        rig,
        errorOf(rig.queue, { Queue: undefined, Exception: 'Order 17 is closed' }),
      )
      expect(await drained(rig, source)).toMatchObject({
        origin: rig.queue,
        delivery: { cycle: { history: [{ message: 'Order 17 is closed' }] } },
      })
    }),
  )

  it.each<[string, (rig: Rig) => string | Buffer]>([
    ['text that is no JSON', () => '{"Message":'],
    ['a list', () => '[1]'],
    ['no message', ({ queue }) => errorOf(queue, { Message: 7 })],
    ['no exception', ({ queue }) => errorOf(queue, { Exception: null })],
    [
      'bytes that are no text',
      ({ queue }) => Buffer.concat([Buffer.from(errorOf(queue)), Buffer.from('"\xff"', 'latin1')]),
    ],
  ])('with %s is a dead letter like others', (_, bodyOf) =>
    onRig(url, async (rig) => {
      const body = Buffer.from(bodyOf(rig))
      const { source } = await errors(rig, body)
      const letter = await drained(rig, source)
      expect(letter).toMatchObject({ reason: 'unknown', delivery: { type: TYPE } })
      expect(Buffer.from(letter.delivery.bytes)).toEqual(body)
    })(),
  )

  it.each([
    ['line ends', '\n', 500_000],
    ['indented lines', '\r\n ', 500_000],
  ])('with an exception of many %s is read fast and keeps its type', (_, part, times) => {
    const Exception = `System.TimeoutException: late${part.repeat(times)}`
    const raw = {
      content: Buffer.from(errorOf('orders', { Exception })),
      properties: { type: TYPE, headers: {} },
    } as unknown as ConsumeMessage
    const start = performance.now()
    const history = unwrapEasyNetQ(raw)?.death.cycle?.history
    // A pattern that reads all following line ends from each line end needs minutes.
    expect(performance.now() - start).toBeLessThan(5_000)
    expect(history).toMatchObject([{ type: 'System.TimeoutException', message: 'late' }])
  })

  it('above 16 MiB is not unwrapped', () => {
    const rawOf = (bytes: number) => {
      const empty = errorOf('orders', { Message: '' })
      const body = errorOf('orders', { Message: 'x'.repeat(bytes - Buffer.byteLength(empty)) })
      const content = Buffer.from(body)
      expect(content).toHaveLength(bytes)
      return { content, properties: { type: TYPE, headers: {} } } as unknown as ConsumeMessage
    }
    expect(unwrapEasyNetQ(rawOf(16_777_216))?.death.reason).toBe('easynetq_failed')
    expect(unwrapEasyNetQ(rawOf(16_777_217))).toBeUndefined()
  })

  it(
    'that its consumer rejected is the dead letter itself',
    onRig(url, async (rig) => {
      const { source, errorQueue } = await errors(rig)
      const body = errorOf('somewhere-else')
      const headers = { 'x-death': [{ queue: rig.queue, reason: 'rejected', count: 1 }] }
      await rig.publish('', errorQueue, body, { type: TYPE, headers })
      const letter = await drained(rig, source)
      expect(letter).toMatchObject({ reason: 'broker_rejected', origin: rig.queue })
      expect(Buffer.from(letter.delivery.bytes).toString()).toBe(body)
    }),
  )
})
