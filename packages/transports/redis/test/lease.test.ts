import { urlOf } from '@redrive/dev-support'
import { isRedriveError } from '@redrive/core'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Redis } from 'ioredis'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { redisStream } from '../src/index.ts'
import { networkTo } from './network.ts'
import { redisWorld } from './world.ts'

const url = await urlOf('redis')
const client = new Redis(url)
afterAll(() => client.disconnect())

const GROUP = 'billing'
const QUIET = { logger: 'off', concurrency: 1, timeout: '1m' } as const

function aWorld() {
  const world = redisWorld(client)
  onTestFinished(() => world.close())
  return world
}

it('stops a handler at the end of its lease when its consumer has no connection', async () => {
  const world = aWorld()
  const { stream } = world
  const network = await networkTo(url)
  const options = { stream, group: GROUP, lease: '1s', timeout: '200ms' } as const
  const steps: string[] = []
  const partitioned = await consume(
    redisStream({ ...options, client: network.client }),
    ({ body }, { signal }) => {
      if (body === 2) return void steps.push('the partitioned consumer handles the next message')
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          steps.push(isRedriveError(signal.reason, 'DELIVERY_LOST') ? 'lost' : 'aborted')
          reject(signal.reason as Error)
        })
        steps.push('started')
      })
    },
    QUIET,
  )
  await world.send({ bytes: Buffer.from('1'), contentType: 'application/json' })
  await until('the handler runs', () => steps.length === 1)
  network.cut()
  const other = await consume(
    redisStream({ ...options, client }),
    () => void steps.push('taken over'),
    QUIET,
  )
  await until('another consumer handles it', () => steps.includes('taken over'))
  await other.stop()
  await until('the handler is stopped', () => steps.length === 3)
  expect(steps.toSorted()).toEqual(['lost', 'started', 'taken over'])
  network.heal()
  await world.send({ bytes: Buffer.from('2'), contentType: 'application/json' })
  await until('the consumer works again', () => steps.length === 4)
  await partitioned.stop()
})

it('delivers a message again whose lease ended only in the process, and does not count that', async () => {
  const world = aWorld()
  const { stream } = world
  const network = await networkTo(url)
  const options = { stream, group: GROUP, lease: '1s', timeout: '200ms' } as const
  const transport = redisStream({ ...options, client: network.client })
  const steps: unknown[] = []
  await transport.open()
  transport.limit(1)
  transport.receive({
    deliver: ({ deliveryCount }) => void steps.push(deliveryCount),
    lost() {
      steps.push('lost')
      network.heal()
    },
  })
  await world.send({ bytes: Buffer.from('1') })
  await until('it is delivered', () => steps.length === 1)
  network.cut()
  await until('it is delivered again', () => steps.length === 3)
  expect(steps).toEqual([1, 'lost', 1])
  await transport.close()
})

it('does not lose a hand-off that is repeated for longer than the lease', async () => {
  const world = aWorld()
  const { stream } = world
  // Without it, the client itself sends the hand-off again.
  const network = await networkTo(url, { autoResendUnfulfilledCommands: false })
  const options = { stream, group: GROUP, lease: '1s', timeout: '200ms' } as const
  let runs = 0
  const consumer = await consume(
    redisStream({ ...options, client: network.client }),
    () => {
      runs += 1
      network.cut()
    },
    QUIET,
  )
  const cutAt = performance.now()
  await world.send({ bytes: Buffer.from('1') })
  await until('the lease has ended', () => runs === 1 && performance.now() - cutAt > 2_000)
  network.heal()
  await until('it is settled', async () => (await world.backlog()) === 0)
  expect(runs).toBe(1)
  await consumer.stop()
})
