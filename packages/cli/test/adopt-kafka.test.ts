import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, runProgram, urlOf } from '@redrive/dev-support'
import { deadLetterTopic } from '@redrive/kafka/kafkajs'
import { until } from '@redrive/testing'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { expect, onTestFinished, test } from 'vitest'
import { rewriteKafkajs } from '../src/adopt/kafkajs.ts'

const PLAIN = `import { Kafka, logLevel } from 'kafkajs'

const { BROKER, TOPIC } = process.env
const kafka = new Kafka({ brokers: [BROKER], logLevel: logLevel.NOTHING })
const consumer = kafka.consumer({ groupId: \`\${TOPIC}-billing\`, maxWaitTimeInMs: 100 })
let failures = 0

await consumer.connect()
await consumer.subscribe({ topic: TOPIC, fromBeginning: true })
await consumer.run({
  eachMessage: async ({ message }) => {
    const order = JSON.parse(message.value.toString())
    if (order === 'bank-away' && failures++ === 0) {
      throw Object.assign(new Error('connect ECONNREFUSED bank:443'), { code: 'ECONNREFUSED' })
    }
    console.log(\`charged \${order}\`)
  },
})

process.once('SIGTERM', async () => {
  await consumer.disconnect()
})
`

test('a consumer that redrive init has changed retries, and dead-letters what cannot be read', async () => {
  const proposal = rewriteKafkajs(PLAIN, false)
  if (proposal?.kind !== 'change') throw new Error(JSON.stringify(proposal))
  const BROKER = await urlOf('kafka')
  const TOPIC = `adopt-${randomUUID()}`
  const kafka = new Kafka({ brokers: [BROKER], logLevel: logLevel.NOTHING })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  const admin = kafka.admin()
  await Promise.all([producer.connect(), admin.connect()])
  onTestFinished(async () => {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(TOPIC))
    await admin.deleteTopics({ topics })
    await Promise.all([producer.disconnect(), admin.disconnect()])
  })
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: 1 }], waitForLeaders: true })
  const values = ['"good"', '"bank-away"', 'not JSON']
  await producer.send({ topic: TOPIC, messages: values.map((value) => ({ value })) })

  const folder = mkdtempSync(join(ROOT, 'packages/cli/test/changed-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'consumer.js'), proposal.after)
  const program = runProgram(join(folder, 'consumer.js'), { BROKER, TOPIC })
  onTestFinished(() => program.kill('SIGKILL'))
  await until('the good order and the retried one are charged', () => {
    if (program.printed().includes('at file:')) throw new Error(program.printed())
    return /charged good[^]*charged bank-away/.test(program.printed())
  })
  const topic = deadLetterTopic(TOPIC, `${TOPIC}-billing`)
  const found = await until('there is a dead letter', async () => {
    const offsets = await admin.fetchTopicOffsets(topic)
    return offsets.reduce((sum, { high }) => sum + Number(high), 0)
  })
  expect(found).toBe(1)
  program.kill('SIGTERM')
  expect(await program.exited).toBe(0)
})
