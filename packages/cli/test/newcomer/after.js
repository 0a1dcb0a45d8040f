import { business, RedriveError } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import amqp from 'amqplib'
import { charge, CardDeclined } from './payments.js'

const URL = process.env.AMQP_URL
const QUEUE = process.env.QUEUE ?? 'v-newcomer-orders'
const MAX_ATTEMPTS = 5

const connection = await amqp.connect(URL)
const channel = await connection.createConfirmChannel()
await channel.prefetch(20)
await channel.assertExchange(`${QUEUE}.dlx`, 'direct', { durable: true })
await channel.assertQueue(`${QUEUE}.dead`, { durable: true })
await channel.bindQueue(`${QUEUE}.dead`, `${QUEUE}.dlx`, QUEUE)
await channel.assertQueue(QUEUE, {
  durable: true,
  deadLetterExchange: `${QUEUE}.dlx`,
  deadLetterRoutingKey: QUEUE,
})
// retry queue: messages wait here 5 s and come back
await channel.assertQueue(`${QUEUE}.retry`, {
  durable: true,
  messageTtl: 5000,
  deadLetterExchange: '',
  deadLetterRoutingKey: QUEUE,
})

function isTransient(error) {
  return ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT'].includes(error.code)
}

async function retry(message, error) {
  const attempts = (message.properties.headers['x-attempts'] ?? 1) + 1
  if (attempts > MAX_ATTEMPTS) return channel.nack(message, false, false)
  channel.sendToQueue(`${QUEUE}.retry`, message.content, {
    ...message.properties,
    headers: { ...message.properties.headers, 'x-attempts': attempts, 'x-error': error.message },
  })
  await channel.waitForConfirms()
  channel.ack(message)
}

const handle = async (message) => {
  if (message === null) return
  let order
  try {
    order = message.body
    if (typeof order.amount !== 'number') throw new Error('amount must be a number')
  } catch (error) {
    console.error('bad payload', error.message)
    throw new RedriveError('PAYLOAD_INVALID', error.message, { cause: error })
  }
  try {
    await charge(order)
  } catch (error) {
    console.error(`order ${order.id} failed`, error.message)
    throw error
  }
}
const queue = { url: URL, queue: QUEUE, topology: 'adopt', queueType: 'classic' }
const consumer = await consume(rabbitmq(queue), handle, { classify: [business(CardDeclined)] })

process.once('SIGTERM', async () => {
  await consumer.stop()
  await channel.close()
  await connection.close()
})
