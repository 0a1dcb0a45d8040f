import { deadLetter, quarantine } from '@redrive/dev-support'
import { expect, it } from 'vitest'
import {
  deadLetterQueue,
  MemoryBroker,
  type MemoryDelivery,
  memory,
  memorySource,
  quarantineQueue,
  send,
} from '../src/index.ts'

const QUEUE = 'orders'
const QUEUES = [deadLetterQueue(QUEUE), quarantineQueue(QUEUE, 'unknown')]

/** A broker with one dead letter and one message in quarantine. */
async function staged() {
  const broker = new MemoryBroker()
  const transport = memory({ broker, queue: QUEUE })
  const deliveries: MemoryDelivery[] = []
  await transport.open()
  transport.limit(10)
  transport.receive({
    deliver: (delivery) => void deliveries.push(delivery),
    lost: () => undefined,
  })
  send(broker, QUEUE, { order: 1 }, { headers: { tenant: 'a', bytes: Buffer.from([0, 255]) } })
  send(broker, QUEUE, { order: 2 }, {})
  const [first, second] = deliveries
  if (first === undefined || second === undefined) throw new Error('nothing was delivered')
  await transport.enact(first, deadLetter())
  await transport.enact(second, quarantine())
  return { broker, source: memorySource({ broker, queue: QUEUE }) }
}

it('the source puts dead letters back into their queues, unchanged', async () => {
  const { broker, source } = await staged()
  const contents = () => QUEUES.map((queue) => broker.contents(queue))
  const before = contents()
  expect(before.map(({ length }) => length)).toEqual([1, 1])
  const batch = await source.drain({ limit: 10 })
  await batch.release()
  expect(contents()).toEqual([[], []])
  await source.putBack(batch.deadLetters)
  expect(contents()).toEqual(before)
})

it('the source puts no dead letter back without a stored queue', async () => {
  const { broker, source } = await staged()
  const batch = await source.drain({ limit: 10 })
  await batch.release()
  const [first, second] = batch.deadLetters
  if (first === undefined || second === undefined) throw new Error('nothing was drained')
  await expect(source.putBack([first, { ...second, envelope: {} }])).rejects.toMatchObject({
    code: 'REFUSED',
  })
  expect(QUEUES.map((queue) => broker.depth(queue))).toEqual([0, 0])
})

it('the source returns its queues with their depths', async () => {
  const { source } = await staged()
  expect(await source.queues()).toEqual(QUEUES.map((name) => ({ name, depth: 1 })))
  expect(await source.depth()).toBe(2)
})
