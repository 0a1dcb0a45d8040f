import { randomUUID } from 'node:crypto'
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { urlOf } from '@redrive/dev-support'
import { topologyOf } from '@redrive/sqs'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { readSqs, SQS_CHECKS } from '../src/index.ts'
import { deadLettersOf } from '../src/sqs/read.ts'
import { idsIn } from './ids.ts'

const endpoint = await urlOf('elasticmq')
const region = 'elasticmq'
vi.stubEnv('AWS_ACCESS_KEY_ID', 'test')
vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test')
const client = new SQSClient({ endpoint, region })
const created: string[] = []
afterAll(async () => {
  for (const QueueUrl of created) await client.send(new DeleteQueueCommand({ QueueUrl }))
  client.destroy()
  vi.unstubAllEnvs()
})

async function create(name: string, Attributes: Record<string, string> = {}): Promise<string> {
  const command = new CreateQueueCommand({ QueueName: name, Attributes })
  const { QueueUrl = '' } = await client.send(command)
  created.push(QueueUrl)
  return QueueUrl
}

async function policyFor(deadLetters: string, maxReceiveCount: number): Promise<string> {
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: deadLetters, AttributeNames: ['QueueArn'] }),
  )
  return JSON.stringify({ deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount })
}

describe('the doctor of SQS', () => {
  it('reads queues, redrive policies and dead-letter queues, by name and by URL', async () => {
    const [orders, failed] = [`orders-${randomUUID()}`, `failed-${randomUUID()}`]
    const RedrivePolicy = await policyFor(await create(failed), 3)
    const url = await create(orders, { RedrivePolicy, VisibilityTimeout: '5' })
    for (const queue of [orders, url]) {
      const facts = await readSqs({ queues: [queue], endpoint, region })
      expect(facts.unreadable).toEqual([])
      expect(facts.sources).toMatchObject([
        {
          name: orders,
          queue: { visibilityMs: 5_000, policy: { deadLetters: failed, maxReceives: 3 } },
          deadLetters: { name: failed, policy: undefined },
        },
      ])
      expect(idsIn(SQS_CHECKS, facts)).toEqual(['sqs.max-receives', 'sqs.visibility'])
    }
  })

  it('finds missing queues, and a FIFO queue without a policy', async () => {
    const fifo = `orders-${randomUUID()}.fifo`
    await create(fifo, { FifoQueue: 'true', ContentBasedDeduplication: 'true' })
    const facts = await readSqs({ queues: [fifo, 'no-such-queue'], endpoint, region })
    expect(idsIn(SQS_CHECKS, facts)).toEqual([
      'sqs.content-deduplication',
      'sqs.dead-letter-queue-missing',
      'sqs.fifo-without-policy',
      'sqs.queue-missing',
    ])
  })

  it('reports a server that it cannot read', async () => {
    const options = { queues: ['orders'], endpoint: 'http://127.0.0.1:1', region }
    const facts = await readSqs(options)
    expect(facts.unreadable).toMatchObject([{ what: 'orders', hides: 'loss' }])
    expect(idsIn(SQS_CHECKS, facts)).toEqual(['sqs.unreadable'])
  })

  it('uses the names of the transport', () => {
    for (const name of ['orders', 'orders.fifo'])
      expect(deadLettersOf(name)).toBe(topologyOf(name).deadLetters)
  })
})
