import { FIRST_CYCLE, SETTLE } from '@redrive/core'
import { DeleteMessageBatchCommand } from '@aws-sdk/client-sqs'
import { urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, expect, it } from 'vitest'
import type { SqsClient, SqsDelivery } from '../src/index.ts'
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

it('a copy is stored once, although the deletion of its original fails at first', async () => {
  const world = await sqsWorld(client)
  let isCut = true
  const send = (command: DeleteMessageBatchCommand, options: object) =>
    isCut && command instanceof DeleteMessageBatchCommand
      ? Promise.reject(new Error('socket hang up'))
      : client.send(command, options)
  const transport = world.transport(undefined, { client: { send: send as SqsClient['send'] } })
  await transport.open()
  await world.send({ bytes: new TextEncoder().encode('{}') })
  const delivered: SqsDelivery[] = []
  transport.limit(1)
  await transport.receive({
    deliver: (delivery) => delivered.push(delivery as SqsDelivery),
    lost: () => undefined,
  })
  await until('the message arrives', () => delivered.length > 0)
  const [delivery] = delivered
  if (delivery === undefined) return
  const failure = { class: 'unknown', signature: 'v1-a', type: 'Error', code: 'A' } as const
  const rest = { message: 'a', retryAfterMs: undefined, timedOut: false, stack: undefined }
  const decision = {
    kind: 'deadLetter',
    reason: 'attempts_exhausted',
    failure: { ...failure, ...rest },
    cycle: FIRST_CYCLE,
  } as const
  expect(await transport.enact(delivery, decision)).toMatchObject({ kind: 'unknown' })
  isCut = false
  expect(await transport.enact(delivery, decision)).toMatchObject({ destination: 'dead_letter' })
  const source = world.source()
  expect(await source.depth()).toBe(1)
  expect(await world.backlog()).toBe(0)
  await transport.close({ drainMs: 0 })
  await world.close()
})
