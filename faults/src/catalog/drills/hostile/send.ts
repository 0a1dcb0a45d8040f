import { randomUUID } from 'node:crypto'
import { Producer } from '@platformatic/kafka'
import { connect } from 'amqplib'
import type { Kind } from '../../options.ts'
import type { Site } from '../site.ts'
import type { Sample } from './samples.ts'

type Send = (site: Site, samples: readonly Sample[]) => Promise<void>

const named = ({ name, headers }: Sample) => [...headers, ['sample', name] as const]
const typeOf = ({ contentType = 'application/json' }: Sample) => contentType

const rabbitmq: Send = async ({ where }, samples) => {
  const connection = await connect(where.amqpUrl)
  const channel = await connection.createConfirmChannel()
  for (const sample of samples) {
    // Uses entries instead of assignments, because a name may be `__proto__`. The shortest value is
    // `true`.
    const pairs = named(sample).map(([name, value]) => [name, value === '' ? true : value] as const)
    const headers = Object.fromEntries(pairs)
    const properties = { persistent: true, contentType: typeOf(sample), messageId: randomUUID() }
    channel.sendToQueue(where.queue, sample.body ?? Buffer.alloc(0), { ...properties, headers })
  }
  await channel.waitForConfirms()
  await connection.close()
}

const kafka: Send = async ({ where }, samples) => {
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: 'hostile',
    bootstrapBrokers: [where.kafkaBroker],
    autocreateTopics: false,
  })
  for (const sample of samples) {
    const pairs = [...named(sample), ['content-type', typeOf(sample)] as const]
    const headers = new Map(pairs.map(([name, value]) => [Buffer.from(name), Buffer.from(value)]))
    const message = { topic: where.queue, key: Buffer.from(sample.name), headers }
    const value = sample.body
    await producer.send({ messages: [value === null ? message : { ...message, value }] })
  }
  await producer.close(true)
}

const postgres: Send = async (site, samples) => {
  for (const sample of samples) {
    const id = randomUUID()
    await site.send([
      {
        ...{ id, key: id, type: 'order.placed', lane: undefined, at: Date.now() },
        contentType: typeOf(sample),
        headers: Object.fromEntries(named(sample)),
        bytes: sample.body ?? Buffer.alloc(0),
      },
    ])
  }
}

export const SEND: Readonly<Record<Kind, Send>> = { rabbitmq, kafka, postgres }
