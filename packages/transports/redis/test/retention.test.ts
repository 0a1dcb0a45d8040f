import { deadLetter, urlOf } from '@redrive/dev-support'
import { type Delivery } from '@redrive/core'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisStreamSource, topologyOf } from '../src/index.ts'
import { redisWorld } from './world.ts'

const client = new Redis(await urlOf('redis'))
afterAll(() => client.disconnect())

const GROUP = 'billing'
const NO_EXPIRY = -1

function aWorld() {
  const world = redisWorld(client)
  onTestFinished(() => world.close())
  return { ...world, deadLetters: topologyOf(world.stream, GROUP).deadLetters }
}

/** Runs a consumer with this retention until it has stored another dead letter. */
async function storeDeadLetter(world: ReturnType<typeof aWorld>, retention: '100s') {
  const depth = await client.xlen(world.deadLetters)
  const fail = () => {
    throw new TypeError('no')
  }
  const consumer = await consume(world.transport(), fail, {
    logger: 'off',
    retry: { attempts: 1 },
    deadLetter: { retention },
  })
  await world.send({ bytes: Buffer.from(retention) })
  await until('it is a dead letter', async () => (await client.xlen(world.deadLetters)) > depth)
  await consumer.stop()
}

describe('the retention of dead letters', () => {
  it('does not remove dead letters that were put back, until another one is stored', async () => {
    const world = aWorld()
    await storeDeadLetter(world, '100s')
    const plane = redisStreamSource({ client, stream: world.stream, group: GROUP })
    const batch = await plane.drain({ limit: 10 })
    await batch.release()
    expect(await client.pttl(world.deadLetters)).toBeGreaterThan(0)
    await plane.putBack(batch.deadLetters)
    expect(await client.pttl(world.deadLetters)).toBe(NO_EXPIRY)
    await storeDeadLetter(world, '100s')
    expect(await client.pttl(world.deadLetters)).toBeGreaterThan(99_000)
    await plane.close()
  })

  it('ends for the whole stream when a consumer without a limit stores a dead letter', async () => {
    const world = aWorld()
    await storeDeadLetter(world, '100s')
    const transport = world.transport()
    await transport.open()
    transport.limit(1)
    await world.send({ bytes: Buffer.from('kept') })
    const { promise, resolve } = Promise.withResolvers<Delivery>()
    await transport.receive({ deliver: resolve, lost: () => undefined })
    await transport.enact(await promise, deadLetter())
    await transport.close({ drainMs: 0 })
    expect(await client.pttl(world.deadLetters)).toBe(NO_EXPIRY)
  })
})
