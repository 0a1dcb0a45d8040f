import { randomUUID } from 'node:crypto'
import {
  AckPolicy,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
} from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { services, urlOf } from '@redrive/dev-support'
import { nats, topologyOf } from '@redrive/nats'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXIT } from '../src/exit.ts'
import { type Desk, type Group, openDesk } from './desk.ts'

interface Order {
  readonly order: number
}

const NO_CUSTOMER: unknown = expect.stringMatching(/^order \d has no customer$/)

/** Dead letters of a consumer of Redrive and of a plain one, with the command line and a real server. */
describe('NATS JetStream', () => {
  const stream = `orders-${randomUUID()}`
  const plain = `mails-${randomUUID()}`
  const { dead } = topologyOf(stream, 'billing')
  const handled: string[] = []
  const deliveries: string[] = []
  let url = ''
  let isBroken = true
  let desk: Desk
  let publish: (subject: string, order: Order) => Promise<unknown>
  let streams: JetStreamManager['streams']

  function charge(source: string, { order }: Order): void {
    deliveries.push(`${source} ${order}`)
    if (isBroken) throw new TypeError(`order ${order} has no customer`)
    handled.push(`${source} ${order}`)
  }

  beforeAll(async () => {
    desk = await openDesk('nats')
    url = await urlOf('nats')
    const connection = await connect({ servers: url })
    const manager = await jetstreamManager(connection)
    const js = jetstream(connection)
    streams = manager.streams
    const described = headers()
    described.set('content-type', 'application/json')
    publish = (subject, order) => js.publish(subject, JSON.stringify(order), { headers: described })
    desk.atEnd(() => connection.close())
    const own = [stream, plain].flatMap((name) => {
      const { retry, dead: letters } = topologyOf(name, 'billing')
      return [name, retry.stream, letters.stream]
    })
    desk.atEnd(() => Promise.allSettled(own.map((name) => manager.streams.delete(name))))
    const retention = RetentionPolicy.Workqueue
    for (const name of [stream, plain]) {
      await manager.streams.add({ name, subjects: [`${name}.>`], retention })
    }
    await manager.consumers.add(plain, {
      durable_name: 'billing',
      ack_policy: AckPolicy.Explicit,
      max_deliver: 2,
    })
    const consumer = await consume(
      nats({ servers: url, stream, consumer: 'billing' }),
      ({ body }) => charge('own', body as Order),
      { logger: 'off', retry: { attempts: 1 } },
    )
    desk.atEnd(() => consumer.stop())
    const messages = await (await js.consumers.get(plain, 'billing')).consume({
      callback: (message: JsMsg) => {
        try {
          charge('plain', message.json())
          message.ack()
        } catch {
          message.nak()
        }
      },
    })
    desk.atEnd(() => messages.close())
    for (const order of [1, 2, 3]) await publish(`${stream}.placed`, { order })
    await until('three messages are dead letters', async () => {
      const { state } = await manager.streams.info(dead.stream)
      return state.messages === 3
    })
  }, 120_000)
  afterAll(() => desk.close(), 60_000)

  test('a peek groups dead letters, and takes none', async () => {
    for (let time = 0; time < 2; time++) {
      const seen = await desk.json<object>('peek', url, dead.stream)
      expect(seen).toMatchObject({ total: 3, looked: 3 })
      expect(seen).toMatchObject({ groups: [{ count: 3, message: NO_CUSTOMER }] })
    }
    const some = await desk.json<object>('peek', url, dead.stream, '--limit', '2')
    expect(some).toMatchObject({ total: 3, looked: 2 })
    // A control plane has not started yet. A peek creates no consumer, so the server counts no delivery.
    expect((await streams.info(dead.stream)).state).toMatchObject({
      messages: 3,
      consumer_count: 0,
    })
    const missing = await desk.redrive('peek', url, 'no-such-stream')
    expect(missing.stderr).toContain('"no-such-stream" does not exist')
    const other = await desk.redrive('peek', url, stream)
    expect(other.stderr).toContain(`"${stream}" is not a stream of Redrive`)
    expect([missing.code, other.code]).toEqual([EXIT.notFound, EXIT.notFound])
  }, 60_000)

  test('the doctor and the topology read the streams of a consumer', async () => {
    const monitor = await services('do', 'nats', 'monitor')
    const address = `${url}?monitor=${monitor}&stream=${stream}&consumer=billing`
    const seen = await desk.redrive('doctor', address)
    expect(seen.stdout).toContain('NATS JetStream: 4 findings, grade C')
    expect(seen.stdout).toContain('LOSS nats.sync-interval')
    expect(seen.code).toBe(EXIT.failure)
    const shown = await desk.redrive('topology', address)
    expect(shown.stdout).toContain(`└─ ${dead.stream} (workqueue, file, replicas: 1)`)
    expect(shown.code).toBe(EXIT.ok)
  }, 60_000)

  test('a server groups dead letters and messages that a plain consumer gave up, and each replay is handled once', async () => {
    await desk.serve({
      own: { nats: { url, stream, consumer: 'billing' } },
      plain: { nats: { url, stream: plain, consumer: 'billing' } },
    })
    await until('the dead letters of Redrive are ingested', desk.groups, {
      accept: ([own]) => own?.openCount === 3,
    })
    // From now on a stream of Redrive keeps the advisories.
    for (const order of [4, 5]) await publish(`${plain}.sent`, { order })
    const found = await until('a group for each source', desk.groups, {
      accept: (all) => all.reduce((sum, { openCount }) => sum + openCount, 0) === 5,
    })
    expect(found.map(({ source }) => source).toSorted()).toEqual(['own', 'plain'])
    expect(deliveries.filter((one) => one.startsWith('plain'))).toHaveLength(4)

    isBroken = false
    const [own, foreign] = ['own', 'plain'].map((name) =>
      found.find(({ source }) => source === name),
    )
    const confirmed = await desk.replay(own as Group)
    expect(confirmed.code).toBe(0)
    expect(confirmed.stdout).toContain('3 resolved')
    // A plain consumer confirms nothing.
    const unproven = await desk.replay(foreign as Group, '--outcome-timeout', '1s')
    expect(unproven.code).toBe(0)
    expect(unproven.stdout).toContain('2 not returned')
    expect(handled.toSorted()).toEqual(['own 1', 'own 2', 'own 3', 'plain 4', 'plain 5'])
    await until('no dead letter is open', async () =>
      (await desk.groups()).every(({ openCount }) => openCount === 0),
    )
  }, 120_000)
})
