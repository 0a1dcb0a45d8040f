import { SETTLE } from '@redrive/core'
import { urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, expect, it } from 'vitest'
import type { SqsDelivery } from '../src/index.ts'
import { clientOf, sqsWorld } from './world.ts'

const client = clientOf(await urlOf('elasticmq'))
afterAll(() => client.destroy())

/** 2 s, the shortest lease. */
const LEASE_MS = 2_000

it('a process that was suspended for a lease changes nothing, although SQS may accept its receipt handle', async () => {
  const world = await sqsWorld(client)
  const transport = world.transport(undefined, { client, lease: LEASE_MS })
  await transport.open()
  await world.send({ bytes: new TextEncoder().encode('{}') })
  const delivered: SqsDelivery[] = []
  const lost: SqsDelivery[] = []
  transport.limit(1)
  await transport.receive({
    deliver: (delivery) => delivered.push(delivery as SqsDelivery),
    lost: (delivery) => lost.push(delivery as SqsDelivery),
  })
  await until('the message arrives', () => delivered.length > 0)
  const [delivery] = delivered
  if (delivery === undefined) return
  // Stops this thread, as a debugger or a full machine does: no timer of the transport runs.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LEASE_MS)
  expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
  expect(lost).toEqual([delivery])
  expect(await world.backlog()).toBe(1)
  await transport.close({ drainMs: 0 })
  await world.close()
})
