import { SETTLE } from '@redrive/core'
import { urlOf } from '@redrive/dev-support'
import { consume } from '@redrive/runtime'
import { type ConsumeMessage, connect, type Options } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { requireSingleConsumer } from '../src/require-single-consumer.ts'
import { Lanes } from '../src/consume/lanes.ts'
import { rabbitmq, type RabbitMqDelivery, topologyOf } from '../src/index.ts'
import {
  deadLetter,
  giveBack,
  type Line,
  lineOf,
  onRig,
  type Rig,
  socketOf,
  until,
  watched,
} from './rig.ts'

const url = await urlOf('rabbitmq')

const customerOf = ({ properties }: ConsumeMessage) => properties.headers?.['customer'] as string
const CONCURRENCY = 8
const IN_LANES = { order: 'lane', laneOf: customerOf } as const
const of = (customer: string) => ({ headers: { customer } })

/** Sends messages `1` to `count` of each customer, one customer after the other. */
async function sendAll(rig: Rig, customers: readonly string[], count: number): Promise<void> {
  await rig.onChannel(async (channel) => {
    for (let number = 1; number <= count; number++) {
      for (const customer of customers) {
        const body = Buffer.from(`${customer}${number}`)
        channel.sendToQueue(rig.queue, body, { persistent: true, ...of(customer) })
      }
    }
    await channel.waitForConfirms()
  })
}

const expected = (customer: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${customer}${at + 1}`)

describe.concurrent('in lane order', () => {
  it(
    'one message of a lane is delivered at a time, and other lanes do not wait for it',
    onRig(url, async (rig) => {
      const { transport, inbox } = await rig.start(IN_LANES)
      await sendAll(rig, ['a', 'b'], 2)
      await inbox.nth(2)
      expect(inbox.bodies).toEqual(['a1', 'b1'])
      for (const at of [1, 0]) {
        const first = inbox.deliveries[at]
        if (first !== undefined) await transport.enact(first, SETTLE)
      }
      await inbox.nth(4)
      expect(inbox.bodies).toEqual(['a1', 'b1', 'b2', 'a2'])
    }),
  )

  it(
    'messages without a lane are delivered at the same time',
    onRig(url, async (rig) => {
      const { inbox } = await rig.start({ order: 'lane', laneOf: () => undefined })
      await sendAll(rig, ['a'], 3)
      await inbox.nth(3)
      expect(inbox.bodies).toEqual(['a1', 'a2', 'a3'])
    }),
  )

  it(
    'messages without a key are one lane by default, and each key is one',
    onRig(url, async (rig) => {
      const { transport, inbox } = await rig.start({ order: 'lane' })
      for (const [body, key] of [['x1'], ['x2'], ['k1', 'k'], ['k2', 'k']]) {
        await rig.send(body ?? '', { headers: key === undefined ? {} : { 'redrive-key': key } })
      }
      const second = await inbox.nth(2)
      expect(inbox.bodies).toEqual(['x1', 'k1'])
      await transport.enact(second, SETTLE)
      await inbox.nth(3)
      expect(inbox.bodies).toEqual(['x1', 'k1', 'k2'])
    }),
  )

  it(
    'a laneOf that throws is reported with the message, which is still delivered',
    onRig(url, async (rig) => {
      const laneOf = () => {
        throw new Error('no customer')
      }
      const { inbox } = await rig.start({ order: 'lane', laneOf })
      await rig.send('a')
      const { lane, headerProblems } = await inbox.nth(1)
      expect(lane).toBe('')
      expect(headerProblems).toEqual(['laneOf threw Error: no customer. The default lane is used.'])
    }),
  )

  it(
    'a laneOf that returns something else is reported with the message',
    onRig(url, async (rig) => {
      const laneOf = () => Promise.resolve('a') as unknown as string
      const { inbox } = await rig.start({ order: 'lane', laneOf })
      await rig.send('a')
      expect((await inbox.nth(1)).headerProblems).toEqual([
        'laneOf returned object, not a text or undefined. The default lane is used.',
      ])
    }),
  )

  it(
    'a returned message stays first in its lane and at this consumer, and a pause delivers nothing',
    onRig(url, async (rig) => {
      const { transport, inbox } = await rig.start(IN_LANES)
      await sendAll(rig, ['a'], 2)
      const first = await inbox.nth(1)
      await transport.pause()
      expect(await transport.enact(first, giveBack)).toMatchObject({
        kind: 'done',
        destination: 'returned',
      })
      expect(await transport.enact(first, SETTLE)).toMatchObject({ kind: 'lost' })
      expect(await rig.count(rig.queue)).toBe(0)
      expect(inbox.bodies).toEqual(['a1'])
      transport.resume()
      await transport.enact(await inbox.nth(2), SETTLE)
      await inbox.nth(3)
      expect(inbox.bodies).toEqual(['a1', 'a1', 'a2'])
    }),
  )

  it(
    'a second consumer receives nothing before the first one ends, and then everything in order',
    onRig(url, async (rig) => {
      const first = await rig.start({ ...IN_LANES, limit: 1 })
      const second = await rig.start({ ...IN_LANES, limit: 1 })
      await sendAll(rig, ['a', 'b'], 20)
      await first.transport.enact(await first.inbox.nth(1), SETTLE)
      await first.inbox.nth(2)
      expect(second.inbox.bodies).toEqual([])
      await first.transport.close()
      for (let count = 1; count <= 39; count++) {
        await second.transport.enact(await second.inbox.nth(count), SETTLE)
      }
      expect(first.inbox.bodies).toEqual(['a1', 'b1'])
      const { bodies } = second.inbox
      expect(bodies.filter((body) => body.startsWith('a'))).toEqual(expected('a', 20).slice(1))
      expect(bodies.filter((body) => body.startsWith('b'))).toEqual(expected('b', 20))
    }),
  )

  it(
    'a dead letter makes room for the next message of its lane',
    onRig(url, async (rig) => {
      const { transport, inbox } = await rig.start(IN_LANES)
      await sendAll(rig, ['a'], 2)
      const first = await inbox.nth(1)
      expect(await transport.enact(first, deadLetter())).toMatchObject({ kind: 'done' })
      expect(Buffer.from((await inbox.nth(2)).bytes).toString()).toBe('a2')
    }),
  )

  it(
    'interrupted connections and failures change no order, and only messages in flight run twice',
    onRig(url, async (rig) => {
      const customers = ['a', 'b', 'c', 'd', 'e']
      const count = 120
      await rig.makeTopology([], 'lane')
      await sendAll(rig, customers, count)
      const lines: Line[] = []
      const handled: string[] = []
      const failed = new Set<string>()
      const consumer = await consume(
        rig.transport({ ...IN_LANES, connect: watched(lines) }),
        ({ bytes }) => {
          const text = Buffer.from(bytes).toString()
          if (Number(text.slice(1)) % 30 === 0 && !failed.has(text)) {
            failed.add(text)
            throw new Error('Could not load customer')
          }
          handled.push(text)
          if (handled.length % 150 === 0)
            socketOf(lineOf(lines, 'consume').model).destroy(new Error('cut'))
        },
        { order: 'lane', concurrency: CONCURRENCY, logger: 'off' },
      )
      await until('everything is handled', () => new Set(handled).size, {
        accept: (seen) => seen === customers.length * count,
        timeout: '60s',
      })
      await consumer.stop()
      for (const customer of customers) {
        const own = handled.filter((text) => text.startsWith(customer))
        expect([...new Set(own)]).toEqual(expected(customer, count))
      }
      // Those in flight, and those whose acknowledgements the broker has not written, for each interruption.
      expect(handled.length).toBeLessThan(customers.length * count + 5 * (CONCURRENCY + 32))
      expect(lines.filter(({ purpose }) => purpose === 'consume').length).toBeGreaterThan(3)
    }),
  )
})

/** Settings of queues that other programs declare. */
const SETTINGS: readonly (readonly [string, Options.AssertQueue])[] = [
  ['classic', {}],
  ['classic, not durable', { durable: false }],
  ['classic, with priorities', { arguments: { 'x-max-priority': 5, 'x-queue-mode': 'lazy' } }],
  ['quorum', { arguments: { 'x-queue-type': 'quorum' } }],
  [
    'quorum, with limits',
    {
      arguments: {
        'x-queue-type': 'quorum',
        'x-dead-letter-exchange': 'failed',
        'x-dead-letter-routing-key': 'true',
        'x-message-ttl': 3_600_000,
        'x-max-length': 10,
        'x-overflow': 'reject-publish',
        'x-delivery-limit': 5,
      },
    },
  ],
]

describe.concurrent("an existing queue, with order: 'lane'", () => {
  const make = (rig: Rig, options: Options.AssertQueue, isSingle: boolean | undefined) =>
    rig.onChannel((channel) =>
      channel.assertQueue(rig.queue, {
        durable: true,
        ...options,
        arguments: {
          ...(options.arguments as object | undefined),
          ...(isSingle === undefined ? {} : { 'x-single-active-consumer': isSingle }),
        },
      }),
    )

  for (const [name, options] of SETTINGS) {
    it(
      `(${name}) is accepted only with a single active consumer`,
      onRig(url, async (rig) => {
        const connection = await connect(url)
        rig.atEnd(() => connection.close())
        const { source } = topologyOf(rig.queue, 'quorum', rig.queue, 'lane')
        for (const isSingle of [undefined, false]) {
          await make(rig, options, isSingle)
          await expect(requireSingleConsumer(connection, source)).rejects.toMatchObject({
            code: 'TOPOLOGY_MISMATCH',
            message: expect.stringContaining('x-single-active-consumer: true') as string,
          })
          await rig.deleteQueue(rig.queue)
        }
        await make(rig, options, true)
        await expect(requireSingleConsumer(connection, source)).resolves.toBeUndefined()
      }),
    )
  }

  for (const topology of ['adopt', 'verify'] as const) {
    it(
      `is checked with topology: '${topology}'`,
      onRig(url, async (rig) => {
        await rig.makeTopology()
        const transport = rig.transport({ ...IN_LANES, topology })
        await expect(transport.open()).rejects.toMatchObject({
          code: 'TOPOLOGY_MISMATCH',
          message: expect.stringContaining(
            `The queue ${rig.queue} delivers to several consumers at the same time`,
          ) as string,
        })
      }),
    )
  }

  it(
    'that has several active consumers cannot be declared again',
    onRig(url, async (rig) => {
      await rig.makeTopology()
      await expect(rig.transport(IN_LANES).open()).rejects.toMatchObject({
        code: 'TOPOLOGY_MISMATCH',
        message: expect.stringContaining('x-single-active-consumer') as string,
      })
    }),
  )
})

it('a higher limit, a resume and a return deliver nothing before the call has ended', async () => {
  const delivered: RabbitMqDelivery[] = []
  const lanes = new Lanes((one) => delivered.push(one))
  const [first, second] = [{ lane: 'a' }, { lane: 'b' }] as unknown as RabbitMqDelivery[]
  for (const one of [first, second]) if (one !== undefined) lanes.add(one)
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const seen = async (call: () => void) => {
    const before = delivered.length
    call()
    const during = delivered.length - before
    await turn()
    return [during, delivered.length - before]
  }
  expect(await seen(() => lanes.setLimit(2))).toEqual([0, 1])
  expect(await seen(() => first !== undefined && lanes.takeBack(first, { ...first }))).toEqual([
    0, 1,
  ])
  lanes.pause()
  expect(await seen(() => second !== undefined && lanes.takeBack(second, { ...second }))).toEqual([
    0, 0,
  ])
  expect(await seen(() => lanes.resume())).toEqual([0, 1])
})

describe('the options', () => {
  it("refuse laneOf without order: 'lane'", () => {
    const make = () => rabbitmq({ url, queue: 'orders', laneOf: customerOf })
    expect(make).toThrow("laneOf: is used only with order: 'lane'")
  })
})
