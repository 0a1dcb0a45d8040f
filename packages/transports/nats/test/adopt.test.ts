import { consume } from '@redrive/runtime'
import { refusal, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { AckPolicy, RetentionPolicy } from '@nats-io/jetstream'
import { afterAll, describe, expect, it } from 'vitest'
import { nats, natsSource, topologyOf } from '../src/index.ts'
import { natsWorld, siteAt } from './world.ts'

const url = await urlOf('nats')
const site = await siteAt(url)
const { manager } = site
afterAll(() => site.connection.close())
const bytes = new TextEncoder().encode('{"number":1}')

describe.concurrent('an existing stream', () => {
  it.each([RetentionPolicy.Limits, RetentionPolicy.Workqueue, RetentionPolicy.Interest])(
    'with waiting messages is consumed and not changed (retention %s)',
    async (retention) => {
      const world = await natsWorld(site, retention)
      const { stream } = world
      const ids = new Set<string>()
      for (let number = 0; number < 5; number++) ids.add(await world.send({ bytes }))
      const before = await manager.streams.info(stream)
      const handled = new Set<string>()
      const consumer = await consume(
        nats({ servers: url, stream, consumer: 'billing' }),
        ({ id }) => void handled.add(id),
        { logger: 'off' },
      )
      await until('all waiting messages are handled', () => handled.size === ids.size)
      await until('none is left', async () => (await world.backlog()) === 0)
      await consumer.stop()
      expect(handled).toEqual(ids)
      expect((await manager.streams.info(stream)).config).toEqual(before.config)
      await world.close()
    },
  )

  it('keeps its consumer, unless messages would be lost or late with it', async () => {
    const world = await natsWorld(site)
    const { stream } = world
    const refused = async (name: string, config: object) => {
      await manager.consumers.add(stream, {
        durable_name: name,
        ack_policy: AckPolicy.Explicit,
        ...config,
      })
      const transport = nats({ servers: url, stream, consumer: name })
      const error = await refusal(transport.open())
      await transport.close()
      return error
    }
    expect(await refused('limited', { max_deliver: 3 })).toMatchObject({
      code: 'TOPOLOGY_MISMATCH',
      message: `Consumer "limited" of stream "${stream}" has max_deliver 3: after it, the server delivers a message no more, and it stays in the stream. Remove the limit: nats consumer edit ${stream} limited --max-deliver=-1`,
    })
    expect((await refused('slow', { backoff: [1e9], max_deliver: 2 })).message).toContain('backoff')
    expect((await refused('silent', { ack_policy: AckPolicy.All })).message).toContain('explicit')
    expect((await refused('pushed', { deliver_subject: `to.${stream}` })).message).toContain('push')
    await world.close()
  })

  it('is required, unless its subjects are given', async () => {
    const options = { servers: url, stream: `new-${crypto.randomUUID()}`, consumer: 'billing' }
    const absent = nats(options)
    expect(await refusal(absent.open())).toMatchObject({
      code: 'TOPOLOGY_MISMATCH',
      message: `NATS has no stream "${options.stream}". Create it, or pass "subjects".`,
    })
    await absent.close()
    const made = nats({ ...options, subjects: [`${options.stream}.>`] })
    await made.open()
    const { config } = await manager.streams.info(options.stream)
    expect(config.retention).toBe(RetentionPolicy.Workqueue)
    await made.close()
    const { retry, dead } = topologyOf(options.stream, 'billing')
    for (const name of [options.stream, retry.stream, dead.stream])
      await manager.streams.delete(name)
  })

  it('is not followed by new streams with verify, neither of a consumer nor of a control plane', async () => {
    const world = await natsWorld(site)
    const { stream } = world
    const options = { servers: url, stream, consumer: 'billing', topology: 'verify' } as const
    const transport = nats(options)
    expect((await refusal(transport.open())).message).toContain(`"${stream}-billing-retry"`)
    await transport.close()
    const source = natsSource(options)
    expect((await source.drain({ limit: 1 })).deadLetters).toEqual([])
    expect(await source.depth()).toBe(0)
    await source.close()
    const names = await manager.streams.names().next()
    expect(names.filter((name) => name.startsWith(stream))).toEqual([stream])
    await world.close()
  })
})
