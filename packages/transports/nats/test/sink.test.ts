import type { OutboundEvent, Sink } from '@redrive/runtime'
import { refusal, urlOf } from '@redrive/dev-support'
import { afterAll, describe, expect, it } from 'vitest'
import { natsSink } from '../src/index.ts'
import { isTooLarge } from '../src/publish.ts'
import { natsWorld, siteAt } from './world.ts'

const url = await urlOf('nats')
const site = await siteAt(url)
afterAll(() => site.connection.close())

const event: OutboundEvent = {
  id: 'event-1',
  key: 'order 1 é%',
  type: 'order.placed',
  lane: undefined,
  at: 1_700_000_000_000,
  bytes: new Uint8Array([0, 255, 128]),
  contentType: 'application/octet-stream',
  headers: { traceparent: '00-1' },
}
const { signal } = new AbortController()

describe.concurrent('a sink', () => {
  it('stores an event that is sent twice once, unchanged', async () => {
    const world = await natsWorld(site)
    const sink = natsSink({ servers: url, subject: ({ type }) => `${world.subject}.${type}` })
    await sink.send([event, event], { signal })
    const { state } = await site.manager.streams.info(world.stream)
    expect(state.messages).toBe(1)
    const stored = await site.manager.streams.getMessage(world.stream, { seq: 1 })
    expect(stored?.subject).toBe(`${world.subject}.order.placed`)
    expect(Uint8Array.from(stored?.data ?? [])).toEqual(event.bytes)
    const names = ['content-type', 'ce-type', 'ce-time', 'redrive-id', 'redrive-key', 'traceparent']
    expect(names.map((name) => stored?.header.get(name))).toEqual([
      'application/octet-stream',
      'order.placed',
      '2023-11-14T22:13:20.000Z',
      'event-1',
      'order 1 %C3%A9%25',
      '00-1',
    ])
    await sink.close()
    await world.close()
  })

  it('is not healthy while its stream is full, although the server responds', async () => {
    const name = `full-${crypto.randomUUID()}`
    const { streams } = site.manager
    await streams.add({ name, subjects: [name], max_msgs: 1, discard: 'new' })
    const sink: Sink = natsSink({ servers: url, subject: name })
    await sink.send([event], { signal })
    const isHealthy = await (sink.healthCheck?.({ signal }).then(() => true) ?? false)
    expect(isHealthy).toBe(false)
    await sink.close()
    await streams.delete(name)
  })

  it('rejects an event that no stream contains', async () => {
    const sink = natsSink({ servers: url, subject: `nowhere.${crypto.randomUUID()}` })
    expect(await refusal(sink.send([event], { signal }))).toMatchObject({ code: 'UNROUTABLE' })
    await sink.close()
  })

  it('rejects an event that a full stream does not accept', async () => {
    const name = `full-${crypto.randomUUID()}`
    const { streams } = site.manager
    await streams.add({ name, subjects: [name], max_msgs: 1, discard: 'new' })
    const sink = natsSink({ servers: url, subject: name })
    await sink.send([event], { signal })
    const second = sink.send([{ ...event, id: 'event-2' }], { signal })
    expect(await refusal(second)).toMatchObject({
      code: 'REFUSED',
      message: `NATS rejected a message to "${name}": maximum messages exceeded.`,
    })
    await sink.close()
    await streams.delete(name)
  })

  it('rejects an event that is too large for the stream, or has too many headers, forever', async () => {
    const name = `small-${crypto.randomUUID()}`
    const { streams } = site.manager
    await streams.add({ name, subjects: [name], max_msg_size: 1_000 })
    const sink = natsSink({ servers: url, subject: name })
    const long = sink.send([{ ...event, bytes: new Uint8Array(1_000) }], { signal })
    const tooLong = await refusal(long)
    expect(tooLong).toMatchObject({
      code: 'REFUSED',
      message: `A message to "${name}" is larger than the stream allows (message size exceeds maximum allowed). Raise "max_msg_size" of the stream.`,
    })
    await streams.update(name, { max_msg_size: -1 })
    const headers = { text: 'x'.repeat(65_536) }
    const tooMany = await refusal(sink.send([{ ...event, headers }], { signal }))
    expect(tooMany).toMatchObject({
      code: 'REFUSED',
      message: `A message to "${name}" has more than 64 KB of headers, which no stream stores.`,
    })
    expect([tooLong, tooMany].map(isTooLarge)).toEqual([true, true])
    await sink.close()
    await streams.delete(name)
  })
})
