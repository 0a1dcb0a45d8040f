import { randomUUID } from 'node:crypto'
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { consume, type DrainedDeadLetter } from '@redrive/runtime'
import { sqs, type SqsSource, sqsSource } from '@redrive/sqs'
import { until } from '@redrive/testing'
import { Refund, Refunds } from './refunds.ts'

const endpoint = process.env['SQS_URL'] ?? 'http://127.0.0.1:25324'
const queue = `refunds-${randomUUID().slice(0, 8)}`
/** SQS moves a message after this number of deliveries. It is above the crash limit of Redrive. */
const MAX_RECEIVES = 10
/**
 * Few and fast retries, so that the demo is short. While one refund fails, no other one passes. By
 * default, Redrive would wait for other refunds before it counts such a failure.
 */
const RETRY = { attempts: 2, backoff: { kind: 'fixed', delay: '1s' }, unproven: 'off' } as const

/** ElasticMQ checks no credentials. On Amazon, `new SQSClient({})` reads them from the environment. */
const client = new SQSClient({
  ...{ endpoint, region: 'elasticmq' },
  credentials: { accessKeyId: 'demo', secretAccessKey: 'demo' },
})
const refunds = new Refunds()
const say = (text: string) => console.log(text)

async function main(): Promise<void> {
  // The queues exist: another program has used them until now.
  const url = await createQueues()
  await request(url, 'R-1', 'CHF')
  await failWithoutRedrive(url)
  for (const refund of ['R-2', 'R-3']) await request(url, refund, 'EUR')
  // Redrive finds the dead-letter queue in the redrive policy of the queue.
  const service = await consume(
    sqs({ client, queue, wait: '1s' }),
    ({ body }) => refunds.pay(body),
    { schema: Refund, retry: RETRY, logger: 'off' },
  )
  const source = sqsSource({ client, queue })
  try {
    await play(url, source)
    say(`demo ok: ${refunds.paid.length} refunds are paid once, 0 are lost`)
  } finally {
    await source.close()
    await service.stop()
    await cleanUp()
  }
}

/** Creates a queue whose redrive policy names a dead-letter queue, and returns its address. */
async function createQueues(): Promise<string> {
  const QueueUrl = await createQueue(`${queue}-failed`)
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
  )
  const policy = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: MAX_RECEIVES }
  return createQueue(queue, { RedrivePolicy: JSON.stringify(policy) })
}

async function createQueue(name: string, Attributes: Record<string, string> = {}) {
  const { QueueUrl = '' } = await client.send(
    new CreateQueueCommand({ QueueName: name, Attributes }),
  )
  return QueueUrl
}

async function request(QueueUrl: string, refund: string, currency: string): Promise<void> {
  const body: Refund = { refund, currency, cents: 1_000 }
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(body) }))
}

/** Receives the message until SQS moves it, as a consumer does that never deletes it. */
async function failWithoutRedrive(QueueUrl: string): Promise<void> {
  const receive = new ReceiveMessageCommand({ QueueUrl, VisibilityTimeout: 0 })
  for (let delivery = 0; delivery <= MAX_RECEIVES; delivery++) await client.send(receive)
}

async function play(url: string, source: SqsSource): Promise<void> {
  for (const refund of ['R-2', 'R-3']) await untilPaid(refund)
  say('1. The two refunds that waited in the queue are paid.')
  await request(url, 'R-4', 'CHF')
  await replayBoth(source)
  const paid = new Set(refunds.paid)
  if (paid.size < refunds.paid.length) throw new Error('A refund is paid twice.')
  const open = await source.depth()
  if (open > 0) throw new Error(`${open} dead letters wait.`)
}

async function replayBoth(source: SqsSource): Promise<void> {
  const batch = await until('both refunds are dead letters', async () => {
    const found = await source.drain({ limit: 10 })
    if (found.deadLetters.length === 2) return found
    await found.abandon()
    return undefined
  })
  say('2. Two dead letters are in the dead-letter queue of the redrive policy:')
  for (const deadLetter of batch.deadLetters) say(`   ${shown(deadLetter)}`)

  refunds.release = 'second'
  for (const deadLetter of batch.deadLetters)
    await source.publish({ deadLetter, replayId: randomUUID() })
  await batch.release()
  for (const refund of ['R-1', 'R-4']) await untilPaid(refund)
  say('3. The next release has the account. Both are replayed and paid.')
  await untilConfirmed(source, batch.deadLetters.length)
  say('   The consumer has confirmed both replays.')
}

/** Waits for the confirmations of replays. One request may return only some of them. */
async function untilConfirmed(source: SqsSource, count: number): Promise<void> {
  const handled = new Set<string>()
  await until('the replays are confirmed', async () => {
    const batch = await source.confirmations({ limit: 10 })
    for (const { replayId, outcome } of batch.confirmations)
      if (outcome === 'handled') handled.add(replayId)
    await batch.release()
    return handled.size === count
  })
}

/** Returns the refund, and why it is a dead letter: the message that SQS moved has no error. */
function shown({ delivery, reason }: DrainedDeadLetter): string {
  const { refund } = Refund.parse(JSON.parse(Buffer.from(delivery.bytes).toString()))
  const { attempts, history } = delivery.cycle
  return `${refund}: ${reason}, ${attempts} attempts, ${history.at(-1)?.message}`
}

const untilPaid = (refund: string) =>
  until(`${refund} is paid`, () => refunds.paid.includes(refund))

/** Deletes the queues of the demo, with that of Redrive. */
async function cleanUp(): Promise<void> {
  const { QueueUrls = [] } = await client.send(new ListQueuesCommand({ QueueNamePrefix: queue }))
  for (const QueueUrl of QueueUrls) await client.send(new DeleteQueueCommand({ QueueUrl }))
}

try {
  await main()
} catch (error) {
  console.error(`demo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
