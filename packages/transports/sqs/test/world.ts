import { randomUUID } from 'node:crypto'
import type { Transport } from '@redrive/runtime'
import type { SentMessage, TransportFault, TransportFixture } from '@redrive/testing'
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { outgoingOf } from '../src/delivery.ts'
import { type SqsOptions, sqs, sqsSource, topologyOf } from '../src/index.ts'
import { Link } from './link.ts'

/** A client of the test server, which checks no credentials. */
export const clientOf = (endpoint: string): SQSClient =>
  new SQSClient({
    endpoint,
    region: 'elasticmq',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  })

export interface SqsWorld extends TransportFixture {
  readonly client: SQSClient
  readonly queue: string
  readonly url: string
  transport(fault?: TransportFault, options?: Partial<SqsOptions>): Transport
}

export interface WorldOptions {
  readonly isFifo?: boolean
  /** Attributes of the queue. */
  readonly attributes?: Record<string, string>
}

/** 3 s: short enough to wait for its end, and longer than a busy machine stops a process. */
const LEASE_MS = 3_000

/** A new queue, as an application would have created it. */
export async function sqsWorld(
  client: SQSClient,
  { isFifo = false, attributes = {} }: WorldOptions = {},
): Promise<SqsWorld> {
  const queue = `orders-${randomUUID()}${isFifo ? '.fifo' : ''}`
  const topology = topologyOf(queue)
  const { QueueUrl: url = '' } = await client.send(
    new CreateQueueCommand({
      QueueName: queue,
      Attributes: { ...attributes, ...(isFifo ? { FifoQueue: 'true' } : {}) },
    }),
  )
  const links = new Map<Transport, Link>()
  let isRefusing = true

  function transport(fault?: TransportFault, options: Partial<SqsOptions> = {}): Transport {
    const link = new Link(client, url, fault, () => isRefusing)
    const made = sqs({
      ...{ client: link.client, queue, lease: LEASE_MS, wait: '1s', timeout: '5s' },
      ...options,
    })
    links.set(made, link)
    return made
  }

  const linkOf = (of: Transport): Link => {
    const link = links.get(of)
    if (link === undefined) throw new Error('This transport belongs to another world.')
    return link
  }

  return {
    client,
    queue,
    url,
    transport,
    lease: { ms: LEASE_MS, transport: () => transport() },
    stealOwnership: (of) => linkOf(of).loseLeases(LEASE_MS),
    dropResponse: (of) => linkOf(of).dropResponse(),
    source: () => sqsSource({ client, queue }),
    cannot: {
      otherGroup: 'a queue has no groups',
      retentionMs: 'ElasticMQ keeps messages forever; queues.test.ts checks the request',
    },
    send: (message) => sendTo(client, url, isFifo, message),
    async backlog() {
      const { Attributes = {} } = await client.send(
        new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }),
      )
      return COUNTS.reduce((sum, name) => sum + Number(Attributes[name] ?? 0), 0)
    },
    crash: (of) => linkOf(of).die(),
    heal() {
      isRefusing = false
    },
    async close() {
      for (const name of [queue, topology.deadLetters, topology.replayed]) {
        const QueueUrl = `${url.slice(0, url.lastIndexOf('/'))}/${name}`
        // A scenario may not have created all of them.
        await client.send(new DeleteQueueCommand({ QueueUrl })).catch(() => undefined)
      }
    },
  }
}

const COUNTS = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const

async function sendTo(
  client: SQSClient,
  QueueUrl: string,
  isFifo: boolean,
  { bytes, key, headers = {}, contentType, type, lane = randomUUID() }: SentMessage,
): Promise<string> {
  const own = key === undefined ? {} : { 'redrive-key': key }
  const { body, attributes } = outgoingOf({ bytes, contentType, type, headers }, {}, own)
  const { MessageId = '' } = await client.send(
    new SendMessageCommand({
      QueueUrl,
      MessageBody: body,
      MessageAttributes: attributes,
      ...(isFifo ? { MessageGroupId: lane, MessageDeduplicationId: randomUUID() } : {}),
    }),
  )
  return MessageId
}
