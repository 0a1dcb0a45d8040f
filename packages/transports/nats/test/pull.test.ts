import { urlOf } from '@redrive/dev-support'
import { AckPolicy } from '@nats-io/jetstream'
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, describe, expect, it } from 'vitest'
import { Puller } from '../src/pull.ts'
import { natsWorld, siteAt } from './world.ts'

const url = await urlOf('nats')
const site = await siteAt(url)
afterAll(() => site.connection.close())
const bytes = new Uint8Array([1])
const LIMITS = { leaseMs: 30_000, maxBatch: 100, maxWaitMs: 30_000 }

/** A connection whose messages wait in the process, as those of a suspended process wait in the socket. */
async function suspendable() {
  const real = await connect({ servers: url })
  const held: (() => void)[] = []
  let isSuspended = false
  const subscribe: NatsConnection['subscribe'] = (subject, options) =>
    real.subscribe(subject, {
      ...options,
      callback: (error, message) => {
        const deliver = () => void options?.callback?.(error, message)
        if (isSuspended) held.push(deliver)
        else deliver()
      },
    })
  return {
    suspend: () => {
      isSuspended = true
    },
    resume: () => {
      isSuspended = false
      for (const deliver of held.splice(0)) deliver()
    },
    held: () => held.length,
    connection: new Proxy(real, {
      get: (target, name) => {
        const value: unknown = name === 'subscribe' ? subscribe : Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    }),
  }
}

describe.concurrent('a puller', () => {
  it('dates a late message with the request that it belongs to', async () => {
    const world = await natsWorld(site)
    await world.send({ bytes })
    const { connection, suspend, resume } = await suspendable()
    const received: { readonly message: Msg; readonly sentAfter: number }[] = []
    const { stream } = world
    const consumer = 'billing'
    const puller = new Puller(connection, { stream, consumer, ...LIMITS }, (message, sentAfter) =>
      received.push({ message, sentAfter }),
    )
    suspend()
    const first = await puller.pull({ batch: 2, waitMs: 50 })
    expect(first).toEqual({ count: 0, problem: undefined })
    const between = performance.now()
    const second = puller.pull({ batch: 2, waitMs: 50 })
    await connection.flush()
    resume()
    await second
    expect(received).toHaveLength(1)
    expect(received[0]?.sentAfter).toBeLessThan(between)
    // A later message has the start of its request again.
    await world.send({ bytes })
    await puller.pull({ batch: 1, waitMs: 1_000 })
    expect(received).toHaveLength(2)
    expect(received[1]?.sentAfter).toBeGreaterThanOrEqual(between)
    puller.close()
    await connection.close()
    await world.close()
  })

  it('reports a request that the server rejects, and each request that the consumer does not allow', async () => {
    const world = await natsWorld(site)
    const { stream } = world
    await site.manager.consumers.add(stream, {
      durable_name: 'small',
      ack_policy: AckPolicy.Explicit,
      max_batch: 3,
      max_expires: 20_000_000,
      max_waiting: 1,
    })
    for (let number = 0; number < 5; number++) await world.send({ bytes })
    const connection = await connect({ servers: url })
    const ends: Msg[] = []
    const pullerWith = (limits: Partial<typeof LIMITS>) =>
      new Puller(connection, { stream, consumer: 'small', ...LIMITS, ...limits }, (message) =>
        ends.push(message),
      )
    const request = { batch: 5, waitMs: 100 }
    const wide = pullerWith({})
    expect((await wide.pull(request)).problem?.message).toContain('Exceeded MaxRequestBatch of 3')
    const slow = pullerWith({ maxBatch: 3 })
    expect((await slow.pull(request)).problem?.message).toContain('Exceeded MaxRequestExpires')
    expect(ends).toEqual([])
    const right = pullerWith({ maxBatch: 3, maxWaitMs: 20 })
    expect(await right.pull(request)).toEqual({ count: 3, problem: undefined })
    expect(await right.pull(request)).toEqual({ count: 2, problem: undefined })
    for (const puller of [wide, slow, right]) puller.close()
    await connection.close()
    await world.close()
  })
})
