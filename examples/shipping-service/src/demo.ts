import { randomUUID } from 'node:crypto'
import { bullmqSource, redisStream, redisStreamSource, topologyOf } from '@redrive/redis'
import { consume, type DrainedDeadLetter } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { Order, Shipments } from './shipments.ts'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:25379'
const stream = `orders-${randomUUID().slice(0, 8)}`
const group = 'shipping'
/** Retries for most of a minute, so a carrier that is down for seconds causes no dead letter. */
const RETRY = { attempts: 50, backoff: { kind: 'exponential', cap: '1s' } } as const

const client = new Redis(url, { maxRetriesPerRequest: null })
const queue = new Queue<Order>(`labels-${randomUUID().slice(0, 8)}`, { connection: client })
const shipments = new Shipments()
const say = (text: string) => console.log(text)

const add = (order: string, country: string) =>
  client.xadd(stream, '*', 'order', order, 'country', country)

async function main(): Promise<void> {
  // The stream and its group exist: another program has used them until now.
  await client.xgroup('CREATE', stream, group, '0', 'MKSTREAM')
  for (const order of ['A-1', 'A-2']) await add(order, 'DE')
  const service = await consume(
    redisStream({ client, stream, group }),
    ({ body }) => shipments.book(body),
    { schema: Order, dependency: 'carrier', retry: RETRY, logger: 'off' },
  )
  try {
    await useStream()
    await useJobs()
    say(`demo ok: ${shipments.booked.size} orders are booked, 0 are lost`)
  } finally {
    await service.stop()
    await cleanUp()
  }
}

async function useStream(): Promise<void> {
  await untilBooked('A-2')
  say('1. The two entries that waited in the stream are booked.')

  shipments.isCarrierDown = true
  for (const order of ['A-3', 'A-4', 'A-5']) await add(order, 'FR')
  await until('each order has failed', () => shipments.failures >= 3)
  shipments.isCarrierDown = false
  for (const order of ['A-3', 'A-4', 'A-5']) await untilBooked(order)
  say('2. The carrier was down. Three orders waited, and are booked now that it is back.')

  await add('A-6', 'Atlantis')
  const source = redisStreamSource({ client, stream, group })
  await until('the order is a dead letter', async () => (await source.depth()) === 1)
  const batch = await source.drain({ limit: 10 })
  const [deadLetter] = batch.deadLetters
  if (deadLetter === undefined) throw new Error('There is no dead letter.')
  say(`3. A-6 is a dead letter: class ${deadLetter.class}, ${messageOf(deadLetter)}`)
  await source.publish({ deadLetter: corrected(deadLetter), replayId: randomUUID() })
  await batch.release()
  await untilBooked('A-6')
  const { confirmations } = await until(
    'the replay is confirmed',
    () => source.confirmations({ limit: 10 }),
    { accept: (batch) => batch.confirmations.length > 0 },
  )
  say(`   Corrected and replayed: ${confirmations[0]?.outcome}.`)
  await source.close()
}

/** The country of the order is corrected, as an operator does it in the console. */
function corrected(deadLetter: DrainedDeadLetter): DrainedDeadLetter {
  const { delivery } = deadLetter
  const bytes = Buffer.from(JSON.stringify({ order: 'A-6', country: 'NL' }))
  return { ...deadLetter, delivery: { ...delivery, bytes } }
}

const messageOf = ({ delivery }: DrainedDeadLetter) => delivery.cycle.history.at(-1)?.message

async function useJobs(): Promise<void> {
  shipments.isCarrierDown = true
  const book = async ({ data }: { readonly data: Order }) => shipments.book(data)
  const worker = new Worker<Order>(queue.name, book, { connection: client })
  try {
    for (const order of ['J-1', 'J-2']) await queue.add('label', { order, country: 'DE' })
    await until('two jobs are failed', async () => (await queue.getFailedCount()) === 2)
    shipments.isCarrierDown = false
    const source = bullmqSource({ client, queue })
    const batch = await source.drain({ limit: 10 })
    await batch.release()
    for (const deadLetter of batch.deadLetters)
      await source.publish({ deadLetter, replayId: randomUUID() })
    for (const order of ['J-1', 'J-2']) await untilBooked(order)
    await source.close()
    say('4. Two failed jobs of BullMQ are retried in their queue, and completed.')
  } finally {
    await worker.close()
  }
}

const untilBooked = (order: string) =>
  until(`${order} is booked`, () => shipments.booked.has(order))

async function cleanUp(): Promise<void> {
  const { group: _, ...keys } = topologyOf(stream, group)
  await client.del(Object.values(keys))
  await client.del(
    ['ingested', 'leases', 'replays', 'cycles'].map((name) => queue.toKey(`redrive:${name}`)),
  )
  await queue.obliterate({ force: true })
  await queue.close()
  client.disconnect()
}

try {
  await main()
} catch (error) {
  console.error(`demo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
