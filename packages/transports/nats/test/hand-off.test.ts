import { consume } from '@redrive/runtime'
import { urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { nats, topologyOf } from '../src/index.ts'
import { natsWorld, siteAt } from './world.ts'

const url = await urlOf('nats')
const site = await siteAt(url)
afterAll(() => site.connection.close())
/** 30 bytes for each message in a file. */
const OVERHEAD = 30
const bytes = new TextEncoder().encode('{"number":1}')

describe.concurrent('a hand-off', () => {
  it('stores a dead letter without its history when that exceeds the limit of the stream', async () => {
    const world = await natsWorld(site)
    const { stream } = world
    const { dead } = topologyOf(stream, 'billing')
    const consumer = await consume(
      nats({ servers: url, stream, consumer: 'billing' }),
      () => {
        throw new Error('x'.repeat(2_000))
      },
      { logger: 'off', retry: { attempts: 1 } },
    )
    const { streams } = site.manager
    const deadLetter = (seq: number) =>
      until('the dead letter is stored', () => streams.getMessage(dead.stream, { seq }))
    await world.send({ bytes })
    const whole = await deadLetter(1)
    const history = whole?.header.get('redrive-history') ?? ''
    const { bytes: size } = (await streams.info(dead.stream)).state
    // The server counts some bytes more for each message than its limit does.
    await streams.update(dead.stream, {
      max_msg_size: Math.round(size - OVERHEAD - history.length / 2),
    })
    const id = await world.send({ bytes })
    const cut = await deadLetter(2)
    await consumer.stop()
    expect(cut?.header.get('redrive-id')).toBe(id)
    expect(cut?.header.get('redrive-history')).toBe('')
    await world.close()
  })
})
