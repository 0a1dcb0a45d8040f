import { refusal, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { AckPolicy, jetstream, RetentionPolicy, type StreamConfig } from '@nats-io/jetstream'
import { connect, headers, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, describe, expect, it } from 'vitest'
import { natsPeek, natsSource, topologyOf } from '../src/index.ts'
import { siteAt } from './world.ts'

const url = await urlOf('nats')
const site = await siteAt(url)
const { manager, connection } = site
afterAll(() => site.connection.close())

/** A stream with a plain consumer that gives up a message after two deliveries. */
async function plain(retention: RetentionPolicy, config: Partial<StreamConfig> = {}) {
  const stream = `plain-${crypto.randomUUID()}`
  const subject = `${stream}.placed`
  const created = { name: stream, subjects: [`${stream}.>`], retention, ...config }
  await manager.streams.add(created)
  await manager.consumers.add(stream, {
    durable_name: 'billing',
    ack_policy: AckPolicy.Explicit,
    max_deliver: 2,
  })
  const consumer = await jetstream(connection).consumers.get(stream, 'billing')
  const source = natsSource({ servers: url, stream, consumer: 'billing' })
  // From here on the server's advisories are stored.
  expect(await source.depth()).toBe(0)
  return {
    stream,
    subject,
    source,
    consumer,
    count: async () => (await manager.streams.info(stream)).state.messages,
    createAgain: async () => {
      await manager.streams.delete(stream)
      await manager.streams.add(created)
    },
    failed: async (text: string, described = headers()) => {
      const options = { msgID: `id-${text}`, headers: described }
      await jetstream(connection).publish(subject, text, options)
      for (let delivery = 0; delivery < 2; delivery++) (await consumer.next())?.nak()
      // The server notices it with the next request.
      await consumer.next({ expires: 1_000 })
    },
    close: async () => {
      await source.close()
      const { retry, dead } = topologyOf(stream, 'billing')
      for (const name of [stream, retry.stream, dead.stream]) await manager.streams.delete(name)
    },
  }
}

/** A connection on which the server gets no acknowledgements, until `heal` is called. */
async function withoutAcknowledgements() {
  const real = await connect({ servers: url })
  let isBroken = true
  const request: NatsConnection['request'] = (subject, ...rest) =>
    isBroken && subject.startsWith('$JS.ACK.') && rest[0] === '+ACK'
      ? Promise.reject(new Error('timeout'))
      : real.request(subject, ...rest)
  return {
    heal: () => {
      isBroken = false
    },
    connection: new Proxy(real, {
      get: (target, name) => {
        const value: unknown = name === 'request' ? request : Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    }),
  }
}

describe.concurrent('dead letters of a plain consumer', () => {
  it('are drained with their message, and a replay reaches the plain consumer again', async () => {
    const { stream, subject, source, consumer, failed, close } = await plain(
      RetentionPolicy.Workqueue,
    )
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const batch = await source.drain({ limit: 10 })
    const [deadLetter] = batch.deadLetters
    expect(deadLetter).toMatchObject({
      origin: stream,
      reason: 'max_deliver',
      class: 'unknown',
      identity: 'stable',
      delivery: { id: 'id-one', cycle: { attempts: 2, history: [{ code: 'MAX_DELIVER' }] } },
      envelope: { subject },
    })
    expect(new TextDecoder().decode(deadLetter?.delivery.bytes)).toBe('one')
    expect((await manager.streams.info(stream)).state.messages).toBe(1)
    await batch.release()
    // A work queue keeps what no consumer acknowledges.
    expect((await manager.streams.info(stream)).state.messages).toBe(0)
    expect(await source.depth()).toBe(0)
    if (deadLetter === undefined) return
    await source.publish({ deadLetter, replayId: 'replay-1' })
    const again = await consumer.next()
    expect(again).toMatchObject({ subject })
    expect(again?.headers?.get('redrive-replay-id')).toBe('replay-1')
    expect(again?.string()).toBe('one')
    again?.ack()
    await close()
  })

  it('stay in a stream with limits, and keep their id on every drain', async () => {
    const { stream, source, failed, close } = await plain(RetentionPolicy.Limits)
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const first = await source.drain({ limit: 1 })
    await first.abandon()
    const second = await source.drain({ limit: 1 })
    expect(second.deadLetters.map(({ delivery }) => delivery.id)).toEqual(['id-one'])
    await second.release()
    expect((await manager.streams.info(stream)).state.messages).toBe(1)
    await close()
  })

  it('are replayed to the subject in the stream, whatever their headers are', async () => {
    const { subject, source, failed, close } = await plain(RetentionPolicy.Workqueue)
    const forged = headers()
    forged.set('redrive-subject', 'payments.approved')
    await failed('one', forged)
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const batch = await source.drain({ limit: 1 })
    expect(batch.deadLetters[0]?.envelope).toEqual({ subject, foreign: 'max_deliver' })
    await close()
  })

  it('are not read from another stream that a forged advisory names', async () => {
    const { stream, source, close } = await plain(RetentionPolicy.Workqueue)
    const other = await plain(RetentionPolicy.Workqueue)
    await jetstream(connection).publish(other.subject, 'of another stream')
    const [advisory = ''] = topologyOf(stream, 'billing').dead.advisories
    const type = 'io.nats.jetstream.advisory.v1.max_deliver'
    connection.publish(advisory, JSON.stringify({ type, stream: other.stream, stream_seq: 1 }))
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const batch = await source.drain({ limit: 1 })
    expect(batch.deadLetters[0]?.problem).toMatchObject({ code: 'unreadable' })
    await batch.release()
    expect((await manager.streams.info(other.stream)).state.messages).toBe(1)
    await other.close()
    await close()
  })

  it('do not include acknowledged messages that the server found removed after a failover', async () => {
    const { stream, source, close } = await plain(RetentionPolicy.Workqueue)
    const [, terminated = ''] = topologyOf(stream, 'billing').dead.advisories
    const type = 'io.nats.jetstream.advisory.v1.terminated'
    const reason = 'Unacknowledged message was deleted'
    connection.publish(terminated, JSON.stringify({ type, stream, stream_seq: 1, reason }))
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    expect((await source.drain({ limit: 1 })).deadLetters).toEqual([])
    expect(await source.depth()).toBe(0)
    await close()
  })

  it('whose message is gone are set aside with the advisory', async () => {
    const { stream, source, failed, close } = await plain(RetentionPolicy.Limits)
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    await manager.streams.purge(stream)
    const batch = await source.drain({ limit: 1 })
    expect(batch.deadLetters[0]?.problem).toEqual({
      code: 'unreadable',
      message: `A plain consumer gave up message 1 of stream "${stream}", and the stream no longer has it.`,
    })
    await batch.release()
    expect(await source.depth()).toBe(0)
    await close()
  })

  it('stay in a stream with interest until its other consumers have acknowledged them', async () => {
    const { stream, source, failed, count, close } = await plain(RetentionPolicy.Interest)
    const config = { durable_name: 'shipping', ack_policy: AckPolicy.Explicit }
    await manager.consumers.add(stream, config)
    const other = await jetstream(connection).consumers.get(stream, 'shipping')
    await failed('first')
    await failed('second')
    await until('both advisories are stored', async () => (await source.depth()) === 2)
    await (await other.next())?.ackAck()
    expect(await count()).toBe(2)
    const batch = await source.drain({ limit: 2 })
    await batch.release()
    // The other consumer has acknowledged the first one only.
    expect(await count()).toBe(1)
    const left = await other.next()
    expect(left?.string()).toBe('second')
    await left?.ackAck()
    expect(await count()).toBe(0)
    await close()
  })

  it('are not the messages of a stream that was deleted and created again', async () => {
    const { stream, subject, source, failed, count, createAgain, close } = await plain(
      RetentionPolicy.Workqueue,
    )
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    await createAgain()
    await jetstream(connection).publish(subject, 'with the same sequence')
    const batch = await source.drain({ limit: 1 })
    expect(batch.deadLetters[0]?.problem).toEqual({
      code: 'unreadable',
      message: `A plain consumer gave up message 1 of stream "${stream}", and the stream no longer has it.`,
    })
    await batch.release()
    expect(await count()).toBe(1)
    await close()
  })

  it('leave a work queue whose messages cannot be deleted', async () => {
    const { source, failed, count, close } = await plain(RetentionPolicy.Workqueue, {
      deny_delete: true,
    })
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    await (await source.drain({ limit: 1 })).release()
    expect(await count()).toBe(0)
    await close()
  })

  it('keep their advisory when the server does not remove the message', async () => {
    const { stream, source, failed, count, close } = await plain(RetentionPolicy.Workqueue)
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const batch = await source.drain({ limit: 1 })
    // The types of the client do not contain this setting of an update.
    const sealed: object = { sealed: true }
    await manager.streams.update(stream, sealed)
    expect((await refusal(batch.release())).message).toContain('sealed')
    expect([await count(), await source.depth()]).toEqual([1, 1])
    await close()
  })

  it('are available again immediately when their release fails', async () => {
    const { stream, failed, close } = await plain(RetentionPolicy.Limits)
    const { connection: broken, heal } = await withoutAcknowledgements()
    const source = natsSource({ stream, consumer: 'billing', connect: async () => broken })
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const first = await source.drain({ limit: 1 })
    expect(await refusal(first.release())).toMatchObject({ code: 'DELIVERY_LOST' })
    expect(await refusal(first.release())).toMatchObject({ code: 'DELIVERY_LOST' })
    heal()
    const second = await source.drain({ limit: 1 })
    expect(second.deadLetters.map(({ delivery }) => delivery.id)).toEqual(['id-one'])
    await second.release()
    expect(await source.depth()).toBe(0)
    await source.close()
    await close()
  })

  it('are replayed to the plain consumer also after they were put back', async () => {
    const { stream, subject, source, consumer, failed, close } = await plain(
      RetentionPolicy.Workqueue,
    )
    await failed('one')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const first = await source.drain({ limit: 1 })
    await source.putBack(first.deadLetters)
    await first.release()
    const second = await source.drain({ limit: 1 })
    const [before] = first.deadLetters
    const [deadLetter] = second.deadLetters
    expect(deadLetter).toMatchObject({
      origin: stream,
      reason: 'max_deliver',
      class: 'unknown',
      envelope: { subject, foreign: 'max_deliver' },
      delivery: { id: 'id-one', headers: before?.delivery.headers, cycle: before?.delivery.cycle },
    })
    if (deadLetter === undefined) return
    await source.publish({ deadLetter, replayId: 'replay-1' })
    expect((await consumer.next())?.string()).toBe('one')
    await second.release()
    await close()
  })

  it.each([RetentionPolicy.Limits, RetentionPolicy.Interest])(
    'contain the text of term (retention %s)',
    async (retention) => {
      const { stream, source, consumer, count, subject, close } = await plain(retention)
      const config = { durable_name: 'shipping', ack_policy: AckPolicy.Explicit }
      await manager.consumers.add(stream, config)
      await jetstream(connection).publish(subject, 'one', { msgID: 'id-one' })
      const message = await consumer.next()
      message?.term('no customer')
      await until('the advisory is stored', async () => (await source.depth()) === 1)
      const batch = await source.drain({ limit: 1 })
      expect(batch.deadLetters).toMatchObject([
        {
          reason: 'terminated',
          delivery: {
            id: 'id-one',
            cycle: { history: [{ code: 'TERMINATED', message: 'no customer' }] },
          },
          envelope: { subject, foreign: 'terminated' },
        },
      ])
      await batch.release()
      // The other consumer has not read it.
      expect(await count()).toBe(1)
      await close()
    },
  )

  it('are set aside after term in a work queue, which removes the message first', async () => {
    const { source, consumer, subject, close } = await plain(RetentionPolicy.Workqueue)
    await jetstream(connection).publish(subject, 'one')
    const message = await consumer.next()
    message?.term('no customer')
    await until('the advisory is stored', async () => (await source.depth()) === 1)
    const first = await source.drain({ limit: 1 })
    expect(first.deadLetters).toMatchObject([
      { reason: 'terminated', problem: { code: 'unreadable' } },
    ])
    await source.putBack(first.deadLetters)
    await first.release()
    const second = await source.drain({ limit: 1 })
    expect(second.deadLetters).toEqual(first.deadLetters)
    await close()
  })

  it('are the same in a peek, which holds and removes nothing', async () => {
    const { stream, source, failed, close } = await plain(RetentionPolicy.Workqueue)
    await failed('one')
    await failed('two')
    await until('both advisories are stored', async () => (await source.depth()) === 2)
    const { dead } = topologyOf(stream, 'billing')
    const peek = await natsPeek(manager, dead.stream)
    expect(await peek?.depth()).toBe(2)
    const peeked = [await peek?.read(1), await peek?.read(5), await peek?.read(5)]
    const batch = await source.drain({ limit: 5 })
    expect(peeked.flat()).toEqual(batch.deadLetters)
    expect(peeked.map((one) => one?.length)).toEqual([1, 1, 0])
    expect(await natsPeek(manager, stream)).toBeUndefined()
    await close()
  })
})
