import { urlsOf } from '@redrive/dev-support'
import { createCluster } from '@redis/client'
import { consume } from '@redrive/runtime'
import { RESTART_SCENARIO, STRESS_SCENARIO, until } from '@redrive/testing'
import { expect, it, onTestFinished } from 'vitest'
import { redisStream, redisStreamSink, redisStreamSource } from '../src/index.ts'
import { contractOnCluster } from './contract.ts'

await contractOnCluster({
  skip: [
    {
      scenario: RESTART_SCENARIO,
      reason: 'the cluster has no replicas, so it is in restart.test.ts',
    },
    { scenario: STRESS_SCENARIO, reason: 'it is in stress.proof.ts, which runs every night' },
  ],
})

it('adds, dead-letters and replays events on each server with the cluster of @redis/client', async () => {
  const rootNodes = (await urlsOf('redis-cluster')).map((url) => ({ url }))
  const client = createCluster({ rootNodes })
  await client.connect()
  onTestFinished(() => client.destroy())
  const { signal } = new AbortController()
  const names = Array.from({ length: 6 }, (_, number) => `orders-${number}-${process.pid}`)
  const sink = redisStreamSink({ client, stream: ({ key }) => key })
  const events = names.map((key) => ({ ...EVENT, id: `e-${key}`, key }))
  await sink.healthCheck()
  await sink.send(events, { signal })
  for (const stream of names) {
    const options = { client, stream, group: 'billing' }
    let runs = 0
    const consumer = await consume(
      redisStream(options),
      () => {
        runs += 1
        if (runs === 1) throw new TypeError('no')
      },
      { logger: 'off', retry: { attempts: 1 } },
    )
    const plane = redisStreamSource(options)
    await until('it is a dead letter', async () => (await plane.depth()) === 1)
    const batch = await plane.drain({ limit: 1 })
    const [deadLetter] = batch.deadLetters
    if (deadLetter === undefined) throw new Error('no dead letter')
    await batch.release()
    await plane.publish({ deadLetter, replayId: 'replay-1' })
    const { confirmations } = await until(
      'it is confirmed',
      () => plane.confirmations({ limit: 1 }),
      { accept: (found) => found.confirmations.length > 0 },
    )
    expect(confirmations).toMatchObject([{ replayId: 'replay-1', outcome: 'handled' }])
    await plane.close()
    await consumer.stop()
  }
})

const EVENT = {
  type: 'order.placed',
  lane: undefined,
  at: 0,
  bytes: Buffer.from('1'),
  contentType: 'application/json',
  headers: {},
}
