import { randomUUID } from 'node:crypto'
import { catalog, migrate } from '@redrive/catalog'
import { emptyDatabase, poolOn, refusal, urlOf } from '@redrive/dev-support'
import { rabbitmqSource } from '@redrive/rabbitmq'
import { until } from '@redrive/testing'
import { type Channel, connect, type GetMessage } from 'amqplib'
import { afterAll, expect, test } from 'vitest'

const mq = await urlOf('rabbitmq', 'amqp')
const pool = poolOn(await emptyDatabase('redrive_server_put_back'))
await migrate(pool)
const made = catalog({ pool })
const connection = await connect(mq)
const channel = await connection.createConfirmChannel()
afterAll(async () => {
  await connection.close()
  await pool.end()
})

/** Creates a queue whose rejected messages go to a dead-letter queue, and rejects these messages. */
async function deadLettered(count: number) {
  const queue = `back-${randomUUID().slice(0, 8)}`
  const dlq = `${queue}.dead`
  await channel.assertQueue(dlq, { durable: true })
  await channel.assertQueue(queue, {
    arguments: { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': dlq },
  })
  for (let at = 0; at < count; at++) {
    const headers = { tenant: `t${at}`, small: at, table: { list: [1, 'two', true] } }
    channel.sendToQueue(queue, Buffer.from([0, 255, at % 256]), {
      headers,
      // Some have no message id.
      ...(at % 3 === 0 ? {} : { messageId: `${queue}-${at}` }),
      persistent: true,
      ...{ correlationId: `c${at}`, priority: 3, timestamp: 1_700_000_000 + at, type: 'order' },
    })
  }
  await channel.waitForConfirms()
  for (let at = 0; at < count; at++) {
    const message = await got(channel, queue)
    channel.nack(message, false, false)
  }
  const depth = async () => (await channel.checkQueue(dlq)).messageCount
  await until('all dead letters', depth, { accept: (seen) => seen === count })
  const source = rabbitmqSource({ url: mq, queue, deadLetterQueues: [dlq] })
  return { queue, dlq, source, depth }
}

/** Returns the next message of a queue, which exists. */
async function got(from: Channel, queue: string): Promise<GetMessage> {
  let message: GetMessage | false = false
  await until('a message', async () => {
    message = await from.get(queue)
    return message !== false
  })
  return message as unknown as GetMessage
}

/** Returns all messages of a queue, by a header that each has, and leaves them in the queue. */
async function contents(queue: string): Promise<ReadonlyMap<string, readonly object[]>> {
  const reader = await connection.createChannel()
  const all: { readonly tenant: string; readonly message: object }[] = []
  for (;;) {
    const message = await reader.get(queue)
    if (message === false) break
    const { headers, ...properties } = message.properties
    const tenant = String(headers?.['tenant'])
    all.push({ tenant, message: { bytes: message.content.toString('hex'), headers, properties } })
  }
  await reader.close()
  const byTenant = Map.groupBy(all, ({ tenant }) => tenant)
  return new Map([...byTenant].map(([tenant, found]) => [tenant, found.map((one) => one.message)]))
}

test('puts dead letters back with the same bytes, headers and properties, and stops the ingest', async () => {
  const { queue, dlq, source, depth } = await deadLettered(12)
  const before = await contents(dlq)
  expect(await made.ingest(source)).toMatchObject({ added: 12 })
  expect(await depth()).toBe(0)

  const progress: number[] = []
  const onProgress = ({ done }: { readonly done: number }) => void progress.push(done)
  expect(await made.putBack(source, { onProgress })).toEqual({
    total: 12,
    done: 12,
    refused: [],
    replaying: 0,
    unknown: 0,
    setAside: 0,
  })
  expect(progress).toEqual([12])
  expect(await contents(dlq)).toEqual(before)
  expect((await made.counts()).sources.find((one) => one.source === queue)).toMatchObject({
    open: 0,
  })
  expect((await made.expired({ sources: [queue] })).days).toMatchObject([
    { byStatus: { put_back: 12 } },
  ])

  expect(await made.ingest(source)).toMatchObject({ added: 0 })
  expect(await depth()).toBe(12)
  await made.startIngest(queue)
  expect(await made.ingest(source)).toMatchObject({ added: 12 })
  await source.close()
})

test('keeps dead letters in the catalog until the broker has confirmed them', async () => {
  const { dlq, source, depth } = await deadLettered(4)
  const before = await contents(dlq)
  await made.ingest(source)
  await channel.deleteQueue(dlq)
  expect((await refusal(made.putBack(source))).message).toContain(`"${dlq}"`)
  expect((await made.counts()).sources.find((one) => one.source === source.source)).toMatchObject({
    open: 4,
  })
  await channel.assertQueue(dlq, { durable: true })
  expect(await made.putBack(source)).toMatchObject({ total: 4, done: 4 })
  expect(await depth()).toBe(4)
  expect(await contents(dlq)).toEqual(before)
  await source.close()
})

/** Returns a value nested in lists. */
function nested(levels: number): unknown {
  let value: unknown = 'end'
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

test('puts set-aside messages back unchanged, next to the dead letters', async () => {
  const { queue, dlq, source, depth } = await deadLettered(4)
  const properties = {
    messageId: 'deep',
    persistent: true,
    headers: { tenant: 'deep', at: nested(80) },
  }
  channel.sendToQueue(dlq, Buffer.from('short'), properties)
  await channel.waitForConfirms()
  const large = { messageId: 'large', persistent: true, headers: { tenant: 'large', small: 1 } }
  channel.sendToQueue(dlq, Buffer.alloc(2_000, 7), large)
  await channel.waitForConfirms()
  const before = await contents(dlq)
  const options = { maxPayloadBytes: 1_000 }
  expect(await made.ingest(source, options)).toMatchObject({ added: 4, setAside: 2 })

  expect(await made.putBack(source)).toEqual({
    ...{ total: 6, done: 6, refused: [], replaying: 0, unknown: 0, setAside: 0 },
  })
  expect(await contents(dlq)).toEqual(before)
  expect((await made.setAside.list({ sources: [queue] })).messages).toEqual([])

  await made.startIngest(queue)
  expect(await made.ingest(source, options)).toMatchObject({ added: 4, setAside: 2 })
  expect(await depth()).toBe(0)
  await source.close()
})

test('leaves set-aside messages that no client can publish, and those with a requested replay', async () => {
  const { dlq, source, queue, depth } = await deadLettered(2)
  const address = new URL(await urlOf('rabbitmq', 'http'))
  const secret = Buffer.from(`${address.username}:${address.password}`).toString('base64')
  const answer = await fetch(`${address.origin}/api/exchanges/%2F/amq.default/publish`, {
    method: 'POST',
    headers: { authorization: `Basic ${secret}` },
    body: JSON.stringify({
      ...{ routing_key: dlq, payload: 'big', payload_encoding: 'string' },
      properties: { message_id: 'big', headers: { stack: 'x'.repeat(70_000) } },
    }),
  })
  expect(await answer.json()).toEqual({ routed: true })
  await until('all three', depth, { accept: (seen) => seen === 3 })
  await made.ingest(source, { maxPayloadBytes: 1 })
  const { messages } = await made.setAside.list({ sources: [queue] })
  const big = messages.find(({ messageId }) => messageId === 'big')
  const other = messages.find(({ id }) => id !== big?.id)
  await made.setAside.requestReplay([other?.id ?? ''], { by: 'ann' })

  const result = await made.putBack(source)
  expect(result).toMatchObject({ total: 2, done: 1, refused: [{ id: big?.id }], setAside: 1 })
  expect(result.refused[0]?.reason).toContain('amqplib encodes at most 65536')
  expect(await depth()).toBe(1)
  expect(await made.setAside.get(big?.id ?? '')).toMatchObject({ status: 'open' })
  expect(await made.setAside.get(other?.id ?? '')).toMatchObject({ status: 'requested' })
  await pool.query(`update redrive_catalog.set_aside set status = 'replaying' where id = $1`, [
    other?.id,
  ])
  expect(await made.putBack(source)).toMatchObject({ replaying: 1, setAside: 0 })
  await source.close()
})

test('continues after a crash between the broker and the catalog, and loses nothing', async () => {
  const { dlq, source } = await deadLettered(5)
  const before = await contents(dlq)
  await made.ingest(source)
  const crashing = Object.create(source) as typeof source
  crashing.putBack = async (letters) => {
    await source.putBack(letters)
    throw new Error('the process was killed')
  }
  expect((await refusal(made.putBack(crashing))).message).toBe('the process was killed')
  // In both: the broker has them, and the catalog has not deleted them.
  expect((await contents(dlq)).size).toBe(5)
  expect(await made.putBack(source)).toMatchObject({ total: 5, done: 5 })
  for (const [tenant, messages] of await contents(dlq)) {
    expect(messages).toEqual([before.get(tenant)?.[0], before.get(tenant)?.[0]])
  }
  await source.close()
})

test('rejects an ingest that drained before the stop, so that its messages return to the queue', async () => {
  const { queue, source, depth } = await deadLettered(3)
  await made.ingest(rabbitmqSource({ url: mq, queue, deadLetterQueues: [`${queue}.none`] }))
  const slow = Object.create(source) as typeof source
  slow.drain = async (options) => {
    const batch = await source.drain(options)
    await pool.query('select redrive_catalog.stop_ingest($1, true)', [queue])
    return batch
  }
  // The drain may return the messages in several batches. Each is rejected.
  const error = await refusal(made.ingest(slow))
  const [first] = error instanceof AggregateError ? (error.errors as readonly Error[]) : [error]
  expect(first?.message).toContain('the ingest of this source is stopped')
  await until('the returned messages', depth, { accept: (seen) => seen === 3 })
  await source.close()
})
