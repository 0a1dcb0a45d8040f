import { urlOf } from '@redrive/dev-support'
import { consume } from '@redrive/runtime'
import { SETTLE } from '@redrive/core'
import { connect } from 'amqplib'
import { describe, expect, it } from 'vitest'
import {
  adoptedPrefix,
  applyTopology,
  deadLetterExchange,
  deadLetterQueue,
  delayQueue,
  replayedQueue,
  topologyOf,
} from '../src/index.ts'
import { refuseStream } from '../src/refuse-stream.ts'
import { makeUser } from './management.ts'
import { deadLetter, onRig, type Rig, retryIn, until } from './rig.ts'

const url = await urlOf('rabbitmq')

/** Queues as other programs declare them. */
const QUEUES: readonly (readonly [
  string,
  'quorum' | 'classic',
  Readonly<Record<string, unknown>>,
])[] = [
  ['a classic queue', 'classic', {}],
  [
    'a classic queue with priorities and a limit',
    'classic',
    { 'x-max-priority': 5, 'x-max-length': 1_000 },
  ],
  ['a quorum queue', 'quorum', { 'x-queue-type': 'quorum' }],
  [
    'a quorum queue with a delivery limit',
    'quorum',
    { 'x-queue-type': 'quorum', 'x-delivery-limit': 5 },
  ],
]

/** Creates a queue whose failed messages go to a dead-letter queue with the usual name, as its owner would. */
async function makeOwned(rig: Rig, own: Readonly<Record<string, unknown>>): Promise<void> {
  const exchange = `${rig.queue}-failed`
  await rig.makeExchange(exchange, 'fanout')
  await rig.makeQueue(deadLetterQueue(rig.queue), { 'x-max-length': 10 })
  await rig.onChannel((channel) => channel.bindQueue(deadLetterQueue(rig.queue), exchange, ''))
  await rig.makeQueue(rig.queue, { ...own, 'x-dead-letter-exchange': exchange })
}

/** Whether the queue exists with exactly these arguments. */
const isUnchanged = (rig: Rig, own: Readonly<Record<string, unknown>>) =>
  rig
    .makeQueue(rig.queue, { ...own, 'x-dead-letter-exchange': `${rig.queue}-failed` })
    .then(() => true)

const hasExchange = (rig: Rig, name: string) =>
  rig
    .onChannel((channel) => channel.checkExchange(name))
    .then(
      () => true,
      () => false,
    )

describe.concurrent('a stream', () => {
  const STREAM = { 'x-queue-type': 'stream' }
  const refusal = (rig: Rig) => ({
    code: 'TOPOLOGY_MISMATCH',
    message: expect.stringContaining(`The queue ${rig.queue} is a stream.`) as string,
  })

  it(
    "is refused with topology: 'adopt', and no queue is created",
    onRig(url, async (rig) => {
      await rig.makeQueue(rig.queue, STREAM)
      await expect(rig.transport({ topology: 'adopt' }).open()).rejects.toMatchObject(refusal(rig))
      const { deadLetters } = topologyOf(rig.queue, 'quorum', adoptedPrefix(rig.queue))
      expect(await rig.count(deadLetters.name)).toBeUndefined()
    }),
  )

  it(
    "is refused with topology: 'verify'",
    onRig(url, async (rig) => {
      await rig.makeTopology([rig.queue])
      await rig.makeQueue(rig.queue, STREAM)
      await expect(rig.transport({ topology: 'verify' }).open()).rejects.toMatchObject(refusal(rig))
    }),
  )

  it(
    'is not created by the check when the queue is missing',
    onRig(url, async (rig) => {
      const connection = await connect(url)
      await refuseStream(connection, rig.queue)
      await connection.close()
      expect(await rig.count(rig.queue)).toBeUndefined()
    }),
  )
})

describe.concurrent('an auto-delete queue', () => {
  const make = (rig: Rig, queue: string, durable: boolean) =>
    rig.onChannel((channel) => channel.assertQueue(queue, { durable, autoDelete: true }))

  const refusal = {
    code: 'TOPOLOGY_MISMATCH',
    message: expect.stringContaining('is declared with auto-delete') as string,
  }

  it.each([
    ['adopt', 'durable', true],
    ['adopt', 'not durable', false],
    ['verify', 'durable', true],
  ] as const)('(%s, %s) keeps its messages and is refused', (topology, _, durable) =>
    onRig(url, async (rig) => {
      await rig.makeTopology([rig.queue])
      await make(rig, rig.queue, durable)
      await rig.send('waiting')
      await expect(rig.transport({ topology }).open()).rejects.toMatchObject(refusal)
      expect(await rig.count(rig.queue)).toBe(1)
      const { deadLetters } = topologyOf(rig.queue, 'quorum', adoptedPrefix(rig.queue))
      expect(await rig.count(deadLetters.name)).toBeUndefined()
    })(),
  )

  it(
    'is refused with a long name',
    onRig(url, async (rig) => {
      const queue = rig.owns(rig.queue.padEnd(190, '-long'))
      await make(rig, queue, false)
      const starting = rig.transport({ queue, topology: 'adopt' }).open()
      await expect(starting).rejects.toMatchObject(refusal)
    }),
  )
})

describe.concurrent('adopting a queue that exists', () => {
  it(
    'works without the permission to declare, if an administrator has created the queues',
    onRig(url, async (rig) => {
      rig.owns(`${rig.queue}.redrive`)
      await rig.makeQueue(rig.queue, { 'x-queue-type': 'quorum' })
      const { queue } = rig
      const created = await applyTopology({ url, queue, topology: 'adopt' })
      expect(created.every(({ isNew }) => isNew)).toBe(true)
      const { address } = await makeUser(rig, { configure: '^$' })
      const { transport, inbox } = await rig.start({ url: address, topology: 'adopt' })
      await rig.send('a', { messageId: 'm-1' })
      expect(await transport.enact(await inbox.nth(1), retryIn(100))).toMatchObject({
        kind: 'done',
      })
      expect(await transport.enact(await inbox.nth(2), deadLetter())).toMatchObject({
        kind: 'done',
      })
      expect(await rig.count(deadLetterQueue(`${rig.queue}.redrive`))).toBe(1)
    }),
  )

  it(
    'is refused without the permission to declare, if the queues are missing',
    onRig(url, async (rig) => {
      await rig.makeQueue(rig.queue, { 'x-queue-type': 'quorum' })
      const { address } = await makeUser(rig, { configure: '^$' })
      const transport = rig.transport({ url: address, topology: 'adopt' })
      await expect(transport.open()).rejects.toMatchObject({
        code: 'TOPOLOGY_MISMATCH',
        message: expect.stringContaining('redrive topology apply') as string,
      })
    }),
  )

  for (const [name, queueType, own] of QUEUES) {
    it(
      `works on ${name}, and changes nothing of it`,
      onRig(url, async (rig) => {
        const prefix = `${rig.queue}.redrive`
        rig.owns(prefix)
        await makeOwned(rig, own)
        await rig.send('waiting')
        const { transport, inbox } = await rig.start({ topology: 'adopt', queueType })
        await transport.enact(await inbox.nth(1), retryIn(100))
        const again = await inbox.nth(2)
        expect(await transport.enact(again, deadLetter())).toMatchObject({
          kind: 'done',
          target: deadLetterQueue(prefix),
        })
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(0)

        const source = rig.source({ topology: 'adopt' })
        const batch = await source.drain({ limit: 10 })
        expect(batch.deadLetters.map(({ origin }) => origin)).toEqual([rig.queue])
        for (const one of batch.deadLetters)
          await source.publish({ deadLetter: one, replayId: 'r-1' })
        await batch.release()
        await transport.enact(await inbox.nth(3), SETTLE)
        await until('the replay is confirmed', async () => {
          const answer = await source.confirmations({ limit: 10 })
          await answer.release()
          return answer.confirmations.some(({ replayId }) => replayId === 'r-1')
        })
        expect(await isUnchanged(rig, own)).toBe(true)
        expect(await hasExchange(rig, deadLetterExchange(prefix))).toBe(false)
        expect(await rig.count(delayQueue(prefix, 100))).toBe(0)
        expect(await rig.count(replayedQueue(prefix))).toBe(0)
      }),
    )
  }

  it(
    'is refused when the queue does not exist',
    onRig(url, async (rig) => {
      const starting = consume(rig.transport({ topology: 'adopt' }), () => undefined)
      await expect(starting).rejects.toMatchObject({
        code: 'TOPOLOGY_MISMATCH',
        message: expect.stringContaining(`The queue ${rig.queue} does not exist`) as string,
      })
    }),
  )

  it(
    'is what the error of a refused declaration suggests, and nothing is left behind',
    onRig(url, async (rig) => {
      await rig.makeQueue(rig.queue, {})
      await expect(rig.transport().open()).rejects.toMatchObject({
        code: 'TOPOLOGY_MISMATCH',
        message: expect.stringContaining(`add topology: 'adopt'`) as string,
      })
      expect(await rig.count(deadLetterQueue(rig.queue))).toBeUndefined()
      expect(await hasExchange(rig, deadLetterExchange(rig.queue))).toBe(false)
    }),
  )
})
