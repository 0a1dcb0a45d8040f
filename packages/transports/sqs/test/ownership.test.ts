import { SETTLE } from '@redrive/core'
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs'
import { deadLetter, giveBack, retryIn, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, expect, it } from 'vitest'
import { hang, intercept } from './intercept.ts'
import { receiveFrom } from './receive.ts'
import { clientOf, type SqsWorld, sqsWorld } from './world.ts'

const client = clientOf(await urlOf('elasticmq'))
afterAll(() => client.destroy())

/** 2 s, the shortest lease. */
const LEASE_MS = 2_000
const sendTo = (world: SqsWorld) => world.send({ bytes: new TextEncoder().encode('{}') })

it('a process that was suspended for a lease changes nothing, although SQS may accept its receipt handle', async () => {
  const world = await sqsWorld(client)
  const transport = world.transport(undefined, { client, lease: LEASE_MS })
  await sendTo(world)
  const { first, lost } = await receiveFrom(transport)
  const delivery = await first()
  // Stops this thread, as a debugger or a full machine does: no timer of the transport runs.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LEASE_MS)
  expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
  expect(lost).toEqual([delivery])
  expect(await world.backlog()).toBe(1)
  await transport.close({ drainMs: 0 })
  await world.close()
})

it('a lease that SQS does not renew ends on time, also when SQS does not respond', async () => {
  const world = await sqsWorld(client)
  const silent = intercept(client, (command, send) =>
    command instanceof ChangeMessageVisibilityBatchCommand ? hang() : send(),
  )
  const transport = world.transport(undefined, { client: silent, lease: LEASE_MS, timeout: '1h' })
  await sendTo(world)
  const { first, lost, delivered } = await receiveFrom(transport)
  const delivery = await first()
  await until('the end of the lease is reported', () => lost.length > 0)
  expect(lost).toEqual([delivery])
  await until('SQS delivers it again', () => delivered.length > 1)
  expect(delivered[1]?.message.receives).toBe(2)
  await transport.close({ drainMs: 0 })
  await world.close()
})

it('a message whose lease ends before its response arrives does not run', async () => {
  const world = await sqsWorld(client)
  let isSlow = true
  const visible = async () => {
    const names = ['ApproximateNumberOfMessages'] as const
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: world.url, AttributeNames: [...names] }),
    )
    return Attributes?.ApproximateNumberOfMessages === '1'
  }
  const slow = intercept(client, async (command, send) => {
    const response = await send()
    if (!isSlow || !(command instanceof ReceiveMessageCommand)) return response
    isSlow = false
    await until('SQS makes the message available again', visible)
    return response
  })
  await sendTo(world)
  const transport = world.transport(undefined, { client: slow, lease: LEASE_MS })
  const { first, delivered } = await receiveFrom(transport, 2)
  expect((await first()).message.receives).toBe(2)
  expect(delivered.length).toBe(1)
  await transport.close({ drainMs: 0 })
  await world.close()
})

it.each([false, true])(
  'a copy is stored once, although the deletion of its original fails at first (FIFO: %s)',
  async (isFifo) => {
    const world = await sqsWorld(client, { isFifo })
    let isCut = true
    const cut = intercept(client, (command, send) =>
      isCut && command instanceof DeleteMessageBatchCommand
        ? Promise.reject(new Error('socket hang up'))
        : send(),
    )
    const transport = world.transport(undefined, { client: cut })
    await sendTo(world)
    const { first } = await receiveFrom(transport)
    const delivery = await first()
    expect(await transport.enact(delivery, deadLetter())).toMatchObject({ kind: 'unknown' })
    isCut = false
    // A stop returns messages in flight. This one has its dead letter, and is deleted.
    const next = isFifo ? giveBack : deadLetter()
    expect(await transport.enact(delivery, next)).toMatchObject({ destination: 'dead_letter' })
    const source = world.source()
    expect(await source.depth()).toBe(1)
    expect(await world.backlog()).toBe(0)
    await transport.close({ drainMs: 0 })
    await world.close()
  },
)

it('the copies of a message of a fair queue keep its group', async () => {
  const world = await sqsWorld(client)
  await client.send(
    new SendMessageCommand({ QueueUrl: world.url, MessageBody: '{}', MessageGroupId: 'tenant-a' }),
  )
  const transport = world.transport()
  const { first, delivered } = await receiveFrom(transport)
  await transport.enact(await first(), retryIn(0))
  await until('the copy arrives', () => delivered.length > 1)
  expect(delivered[1]?.message.group).toBe('tenant-a')
  await transport.close({ drainMs: 0 })
  await world.close()
})
