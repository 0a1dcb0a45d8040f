import { urlsOf } from '@redrive/dev-support'
import rascal from 'rascal'
import { expect, it } from 'vitest'
import { onRig, type Rig, until } from './rig.ts'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')

const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

it(
  'a message that rascal retries twice and then forwards is drained with its error, and replayed to its queue',
  on(async (rig) => {
    const dead = `${rig.queue}-failed`
    for (const queue of [rig.queue, dead]) await rig.makeQueue(queue)
    const known = { check: false, assert: false }
    const config = rascal.withDefaultConfig({
      vhosts: { '/': { connection: { url }, queues: { [rig.queue]: known, [dead]: known } } },
      publications: { failed: { vhost: '/', queue: dead } },
      subscriptions: { orders: { vhost: '/', queue: rig.queue } },
    })
    const broker = await rascal.BrokerAsPromised.create(config)
    rig.atEnd(() => broker.shutdown())
    broker.on('error', () => undefined)
    const recovery = [
      { strategy: 'republish', attempts: 2 },
      { strategy: 'forward', publication: 'failed' },
    ]
    const subscription = await broker.subscribe('orders')
    subscription.on('message', (_, __, ackOrNack) =>
      ackOrNack(new Error('Order 17 has no customer'), recovery),
    )
    await rig.send('body', { messageId: 'm-1', headers: { tenant: { '!': 'int64', value: 4 } } })
    await until('a dead letter', async () => (await rig.count(dead)) === 1)
    await subscription.cancel()
    const source = rig.source({ deadLetterQueues: [dead] })
    const [letter] = (await source.drain({ limit: 1 })).deadLetters
    if (letter === undefined) throw new Error('nothing was drained')
    expect(letter).toMatchObject({
      origin: rig.queue,
      reason: 'rascal_failed',
      envelope: { exchange: '', routingKey: rig.queue },
      delivery: {
        id: 'm-1',
        source: rig.queue,
        headers: { tenant: 4 },
        cycle: { attempts: 3, history: [{ message: 'Order 17 has no customer' }] },
      },
    })
    await source.publish({ deadLetter: letter, replayId: 'r-1' })
    const replayed = await rig.take(rig.queue)
    expect(replayed.content.toString()).toBe('body')
    expect(replayed.properties.headers).toMatchObject({ tenant: 4, 'redrive-replay-id': 'r-1' })
  }),
)
