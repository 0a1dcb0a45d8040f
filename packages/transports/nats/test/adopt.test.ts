import { consume } from '@redrive/runtime'
import { refusal, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { AckPolicy, RetentionPolicy, type StreamConfig } from '@nats-io/jetstream'
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
      message: `Consumer "limited" of stream "${stream}" has max_deliver 3: after these deliveries, the server keeps a message in the stream and delivers it no more. Remove the limit: nats consumer edit ${stream} limited --max-deliver=-1`,
    })
    expect((await refused('slow', { backoff: [1e9], max_deliver: 2 })).message).toContain('backoff')
    expect((await refused('silent', { ack_policy: AckPolicy.All })).message).toContain('explicit')
    expect((await refused('bodyless', { headers_only: true })).message).toContain('without bodies')
    const grouped = { priority_groups: ['one'], priority_policy: 'overflow' }
    expect((await refused('grouped', grouped)).message).toContain('priority groups')
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

  it('does not share the streams of Redrive with a stream or consumer whose names join to the same name', async () => {
    const first = await natsWorld(site)
    const { stream } = first
    const second = `${stream}-eu`
    await manager.streams.add({ name: second, subjects: [`${second}.>`] })
    const owner = nats({ servers: url, stream: second, consumer: 'billing' })
    await owner.open()
    const options = { servers: url, stream, consumer: 'eu-billing' }
    const source = natsSource(options)
    const others = [
      nats(options),
      nats({ ...options, topology: 'verify' }),
      nats({ ...options, prefix: `${second}-billing`, consumer: 'billing' }),
    ]
    const name = `${second}-billing-retry`
    for (const transport of others)
      expect(await refusal(transport.open())).toMatchObject({
        code: 'TOPOLOGY_MISMATCH',
        message: expect.stringContaining(
          `Stream "${name}" belongs to consumer "billing" of stream "${second}"`,
        ) as string,
      })
    expect(await refusal(source.depth())).toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
    await Promise.all([owner, ...others].map((transport) => transport.close()))
    await source.close()
    const { retry, dead } = topologyOf(second, 'billing')
    for (const one of [second, retry.stream, dead.stream]) await manager.streams.delete(one)
    await first.close()
  })

  it('is refused when a stream with the name of one of Redrive cannot store its messages', async () => {
    const world = await natsWorld(site)
    const { stream } = world
    const { retry, dead } = topologyOf(stream, 'billing')
    const retention = RetentionPolicy.Workqueue
    const subjects = [dead.deadLetters, dead.quarantine, dead.confirmations]
    const valid = { name: dead.stream, subjects, retention }
    const reasonOf = async (config: Partial<StreamConfig>) => {
      await manager.streams.add({ ...valid, ...config })
      const transport = nats({ servers: url, stream, consumer: 'billing', topology: 'verify' })
      const { message } = await refusal(transport.open())
      await transport.close()
      await manager.streams.delete(dead.stream)
      return message
    }
    await manager.streams.add({
      name: retry.stream,
      subjects: [retry.subject, `${retry.delayed}.>`],
      retention,
      allow_msg_schedules: true,
      allow_rollup_hdrs: true,
    })
    expect(await reasonOf({ retention: RetentionPolicy.Limits })).toContain('retention "limits"')
    expect(await reasonOf({ subjects: subjects.slice(0, 2) })).toContain(
      `does not contain the subject "${dead.confirmations}"`,
    )
    expect(await reasonOf({})).toContain('time to live')
    expect(await reasonOf({ allow_msg_ttl: true })).toContain('NATS has no consumer "redrive"')
    await manager.streams.delete(retry.stream)
    await world.close()
  })
})
