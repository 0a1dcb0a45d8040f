import { randomUUID } from 'node:crypto'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { type NatsSource, nats, natsSource, topologyOf } from '@redrive/nats'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Invoices, Order } from './invoices.ts'

const servers = process.env['NATS_URL'] ?? 'nats://127.0.0.1:25222'
const stream = `ORDERS-${randomUUID().slice(0, 8)}`
const consumer = 'invoices'
/** Another consumer of the stream, without Redrive. */
const OTHER = 'shipping'
/**
 * Few and fast retries, so that the demo is short. While one order fails, no other one passes. By
 * default, Redrive would wait for other orders before it counts such a failure.
 */
const RETRY = { attempts: 2, backoff: { kind: 'fixed', delay: '1s' }, unproven: 'off' } as const

const connection = await connect({ servers })
const manager = await jetstreamManager(connection)
const invoices = new Invoices()
const say = (text: string) => console.log(text)

const place = (order: string, country: string) =>
  jetstream(connection).publish(
    `${stream}.placed`,
    JSON.stringify({ order, country, cents: 1_000 } satisfies Order),
  )

async function main(): Promise<void> {
  // The stream and its consumers exist: another program has used them until now.
  await manager.streams.add({ name: stream, subjects: [`${stream}.>`] })
  for (const name of [consumer, OTHER])
    await manager.consumers.add(stream, { durable_name: name, ack_policy: AckPolicy.Explicit })
  for (const order of ['A-1', 'A-2']) await place(order, 'DE')
  const service = await consume(
    nats({ servers, stream, consumer }),
    ({ body }) => invoices.write(body),
    { schema: Order, retry: RETRY, logger: 'off' },
  )
  const source = natsSource({ servers, stream, consumer })
  try {
    await play(source)
    say(`demo ok: ${invoices.orders.length} orders have one invoice each, 0 are lost`)
  } finally {
    await source.close()
    await service.stop()
    await cleanUp()
  }
}

async function play(source: NatsSource): Promise<void> {
  for (const order of ['A-1', 'A-2']) await untilWritten(order)
  say('1. The two orders that waited in the stream have an invoice.')

  await place('A-3', 'FR')
  await until('the order is a dead letter', async () => (await source.depth()) === 1)
  const batch = await source.drain({ limit: 10 })
  const [deadLetter] = batch.deadLetters
  if (deadLetter === undefined) throw new Error('There is no dead letter.')
  const { attempts, history } = deadLetter.delivery.cycle
  say(`2. A-3 is a dead letter after ${attempts} attempts: ${history.at(-1)?.message}`)
  await place('A-4', 'DE')
  await untilWritten('A-4')
  say('   It blocks no other order: A-4 has an invoice.')

  invoices.release = 'second'
  await source.publish({ deadLetter, replayId: randomUUID() })
  await batch.release()
  await untilWritten('A-3')
  const { confirmations } = await until(
    'the replay is confirmed',
    () => source.confirmations({ limit: 10 }),
    { accept: (found) => found.confirmations.length > 0 },
  )
  say(`3. The next release has the tax rate. A-3 is replayed: ${confirmations[0]?.outcome}.`)

  const orders = new Set(invoices.orders)
  if (orders.size < invoices.orders.length) throw new Error('An order has two invoices.')
  const { num_pending: waiting } = await manager.consumers.info(stream, OTHER)
  if (waiting !== orders.size) throw new Error(`${waiting} messages wait for "${OTHER}".`)
  say(`4. The consumer "${OTHER}" gets each of the ${waiting} orders once: no retry and no replay.`)
}

const untilWritten = (order: string) =>
  until(`${order} has an invoice`, () => invoices.orders.includes(order))

async function cleanUp(): Promise<void> {
  const { retry, dead } = topologyOf(stream, consumer)
  for (const name of [stream, retry.stream, dead.stream]) await manager.streams.delete(name)
}

try {
  await main()
} catch (error) {
  console.error(`demo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  await connection.close()
}
