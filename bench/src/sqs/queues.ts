// The server of `dev/services`, the untimed steps of a benchmark on it, and a count of requests.
import { randomUUID } from 'node:crypto'
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  PurgeQueueCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { urlOf } from '@redrive/dev-support'
import { PATIENCE_MS } from '../patience.ts'

export const serverUrl = (): Promise<string> => urlOf('elasticmq')

const BODY = 'x'.repeat(1_024)
/** The limit of SQS for a batch. */
const BATCH = 10

/** A client with its requests counted. */
export interface CountingClient {
  readonly client: SQSClient
  requests: number
}

export function countingClient(endpoint: string): CountingClient {
  const client = new SQSClient({
    endpoint,
    region: 'elasticmq',
    credentials: { accessKeyId: 'bench', secretAccessKey: 'bench' },
  })
  const counting: CountingClient = { client, requests: 0 }
  client.middlewareStack.add(
    (next) => (args) => {
      counting.requests += 1
      return next(args)
    },
    { step: 'initialize' },
  )
  return counting
}

/** Two queues of one candidate, which no test uses: the server is shared. */
export class Queues {
  readonly #client: SQSClient
  readonly queue: string
  readonly url: string
  readonly deadLetters: string

  private constructor(client: SQSClient, queue: string, urls: readonly [string, string]) {
    this.#client = client
    this.queue = queue
    this.url = urls[0]
    this.deadLetters = urls[1]
  }

  static async open(endpoint: string): Promise<Queues> {
    const { client } = countingClient(endpoint)
    const queue = `redrive-benchmark-${randomUUID()}`
    const create = async (QueueName: string) =>
      (await client.send(new CreateQueueCommand({ QueueName }))).QueueUrl ?? ''
    return new Queues(client, queue, [await create(queue), await create(`${queue}-dlq`)])
  }

  async fill(count: number): Promise<void> {
    const sending: Promise<unknown>[] = []
    for (let sent = 0; sent < count; sent += BATCH) {
      const Entries = Array.from({ length: Math.min(BATCH, count - sent) }, (_, index) => ({
        Id: String(index),
        MessageBody: BODY,
      }))
      sending.push(this.#client.send(new SendMessageBatchCommand({ QueueUrl: this.url, Entries })))
    }
    await Promise.all(sending)
  }

  /** Counts all messages of a queue, also those in flight. */
  async count(url: string): Promise<number> {
    const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const
    const { Attributes = {} } = await this.#client.send(
      new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...names] }),
    )
    return names.reduce((sum, name) => sum + Number(Attributes[name]), 0)
  }

  async until(url: string, count: number): Promise<void> {
    const endsAt = performance.now() + PATIENCE_MS
    for (;;) {
      const found = await this.count(url)
      if (found === count) return
      if (performance.now() > endsAt) throw new Error(`${url} stays at ${found} messages`)
    }
  }

  async purge(url: string): Promise<void> {
    await this.#client.send(new PurgeQueueCommand({ QueueUrl: url }))
  }

  async close(): Promise<void> {
    // Only Redrive has the last one.
    for (const QueueUrl of [this.url, this.deadLetters, `${this.url}-replayed`])
      await this.#client.send(new DeleteQueueCommand({ QueueUrl })).catch(() => undefined)
    this.#client.destroy()
  }
}
