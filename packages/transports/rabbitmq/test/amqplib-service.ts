import { setTimeout as pause } from 'node:timers/promises'
import { business, exponential } from '@redrive/core'
import { rabbitmq, rabbitmqSource, topologyOf } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { connect } from 'amqplib'

/** A service on RabbitMQ: it must print the same lines with every supported version of amqplib. */
const [, , url = '', queue = ''] = process.argv
const address = { url, queue }

class CardDeclined extends Error {}
const declined = new Set(['order 3'])
const handled: string[] = []

const consumer = await consume(
  rabbitmq(address),
  async (message, { attempt, cycle }) => {
    const order = String(message.body)
    if (order === 'order 2' && attempt === 1)
      throw Object.assign(new Error('connect ECONNREFUSED payments:443'), { code: 'ECONNREFUSED' })
    if (declined.has(order)) throw new CardDeclined(`the card of ${order} was declined`)
    handled.push(`${order}, attempt ${attempt}, cycle ${cycle}`)
  },
  {
    classify: [business(CardDeclined)],
    retry: { backoff: exponential({ base: '50ms', cap: '100ms' }) },
    logger: 'off',
  },
)

const connection = await connect(url)
const channel = await connection.createConfirmChannel()
const headers = { tenant: { '!': 'int64', value: 5 } }
for (const number of [1, 2, 3])
  channel.sendToQueue(queue, Buffer.from(`order ${number}`), {
    messageId: `m-${number}`,
    contentType: 'text/plain',
    headers,
  })
await channel.waitForConfirms()
await until(() => handled.length === 2)

const source = rabbitmqSource(address)
await until(async () => (await source.depth()) === 1)
const batch = await source.drain({ limit: 10 })
for (const deadLetter of batch.deadLetters) {
  const [failure] = deadLetter.delivery.cycle.history
  console.log(`dead letter: ${deadLetter.class}, ${failure?.type}: ${failure?.message}`)
  console.log(`types: ${deadLetter.envelope['headerTypes']}`)
  declined.clear()
  await source.publish({ deadLetter, replayId: 'replay-1' })
}
await batch.release()
await until(() => handled.length === 3)
await until(async () => {
  const found = await source.confirmations({ limit: 10 })
  for (const { replayId, outcome } of found.confirmations) console.log(`${replayId}: ${outcome}`)
  await found.release()
  return found.confirmations.length > 0
})
for (const line of handled.toSorted()) console.log(line)

await source.close()
await consumer.stop()
const { deadLetters, exchange, source: own, later } = topologyOf(queue, 'quorum')
for (const { name } of [own, deadLetters, ...later]) await channel.deleteQueue(name)
await channel.deleteExchange(exchange)
await connection.close()

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pause(20)
}
