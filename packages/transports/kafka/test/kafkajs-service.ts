import { setTimeout as pause } from 'node:timers/promises'
import { business, exponential } from '@redrive/core'
import { deadLetterTopic, withRedrive } from '@redrive/kafka/kafkajs'
import { Kafka, logLevel, Partitioners } from 'kafkajs'

/** A service with kafkajs, which needs no second client. */
const [, , broker = '', topic = ''] = process.argv
const group = `${topic}-billing`

class CardDeclined extends Error {}
const handled: string[] = []

const kafka = new Kafka({ clientId: 'billing', brokers: [broker], logLevel: logLevel.NOTHING })
const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100 })
const producer = kafka.producer({
  idempotent: true,
  createPartitioner: Partitioners.DefaultPartitioner,
})
const admin = kafka.admin()
await Promise.all([consumer.connect(), producer.connect(), admin.connect()])
await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
const values = ['order 1', 'order 2', 'order 3'].map((order) => JSON.stringify(order))
await producer.send({ topic, messages: values.map((value) => ({ value })) })

const redriven = await withRedrive(
  async (message, { attempt }) => {
    const order = String(message.body)
    if (order === 'order 2' && attempt === 1)
      throw Object.assign(new Error('connect ECONNREFUSED payments:443'), { code: 'ECONNREFUSED' })
    if (order === 'order 3') throw new CardDeclined('the card was declined')
    handled.push(`${order}, attempt ${attempt}`)
  },
  {
    ...{ topic, group, consumer, producer, admin, logger: 'off' },
    classify: [business(CardDeclined)],
    retry: { backoff: exponential({ base: '50ms', cap: '250ms' }) },
  },
)
await consumer.subscribe({ topics: redriven.topics, fromBeginning: true })
await consumer.run(redriven.run)

async function deadLetters(): Promise<number> {
  const offsets = await admin.fetchTopicOffsets(deadLetterTopic(topic, group))
  return offsets.reduce((sum, { high }) => sum + Number(high), 0)
}
while (handled.length < 2 || (await deadLetters()) < 1) await pause(20)
for (const line of handled.toSorted()) console.log(line)
console.log(`dead letters: ${await deadLetters()}`)

await redriven.stop()
await consumer.disconnect()
const topics = (await admin.listTopics()).filter((name) => name.startsWith(topic))
await admin.deleteTopics({ topics })
await Promise.all([producer.disconnect(), admin.disconnect()])
