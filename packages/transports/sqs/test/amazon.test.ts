/**
 * Tests against Amazon itself, which has properties that ElasticMQ lacks. They create queues, and delete them again:
 *
 *     REDRIVE_SQS_REAL=1 AWS_REGION=eu-central-1 pnpm vitest run packages/transports/sqs/test/amazon.test.ts
 *
 * With AWS_ENDPOINT_URL_SQS they run on another server with the API of SQS.
 */
import { randomUUID } from 'node:crypto'
import { business, SETTLE } from '@redrive/core'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { afterAll, describe, expect, it } from 'vitest'
import { sqs, sqsSource, topologyOf } from '../src/index.ts'
import { receiveFrom } from './receive.ts'

const isReal = process.env['REDRIVE_SQS_REAL'] === '1'
const WHY = 'skipped without REDRIVE_SQS_REAL=1, because they need an account of Amazon'
/** Amazon delivers a message and counts it within seconds, and rarely later. */
const PATIENT = { timeout: '2m' } as const
const DELAY_MS = 2_000

class Refusal extends Error {}

describe.skipIf(!isReal)(`Amazon SQS, ${WHY}`, { timeout: 300_000 }, () => {
  const client = new SQSClient({})
  const urls: string[] = []
  afterAll(async () => {
    // A test creates some of them only.
    for (const QueueUrl of urls)
      await client.send(new DeleteQueueCommand({ QueueUrl })).catch(() => undefined)
    client.destroy()
  })

  async function create(name: string, Attributes: Record<string, string> = {}): Promise<string> {
    const command = new CreateQueueCommand({ QueueName: name, Attributes })
    const { QueueUrl = '' } = await client.send(command)
    const { deadLetters, replayed } = topologyOf(name)
    urls.push(...[name, deadLetters, replayed].map((one) => QueueUrl.replace(name, one)))
    return QueueUrl
  }
  const send = (QueueUrl: string, MessageBody: string, group?: string) =>
    client.send(
      new SendMessageCommand({
        QueueUrl,
        MessageBody,
        ...(group === undefined
          ? {}
          : { MessageGroupId: group, MessageDeduplicationId: randomUUID() }),
      }),
    )
  const attributesOf = async (QueueUrl: string) =>
    (await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] })))
      .Attributes ?? {}

  it('delays a retry, stores a dead letter, and confirms its replay', async () => {
    const queue = `redrive-${randomUUID()}`
    const url = await create(queue)
    const runs: number[] = []
    let isBroken = true
    const consumer = await consume(
      sqs({ client, queue, wait: '1s' }),
      (_, { attempt }) => {
        runs.push(Date.now())
        if (isBroken) throw attempt === 1 ? new Error('it broke') : new Refusal('no customer')
      },
      {
        logger: 'off',
        classify: [business(Refusal)],
        retry: { maxInlineDelay: 0, backoff: { kind: 'fixed', delay: DELAY_MS } },
      },
    )
    await send(url, '{}')
    const source = sqsSource({ client, queue })
    const batch = await until(
      'the dead letter is drained',
      async () => {
        const drained = await source.drain({ limit: 1 })
        return drained.deadLetters.length > 0 && drained
      },
      PATIENT,
    )
    const [first = 0, second = 0] = runs
    expect(second - first).toBeGreaterThanOrEqual(DELAY_MS)
    const [deadLetter] = batch.deadLetters
    expect(deadLetter?.delivery.cycle.history.length).toBe(2)
    isBroken = false
    if (deadLetter !== undefined) await source.publish({ deadLetter, replayId: 'replay-1' })
    await batch.release()
    const confirmed = await until(
      'the replay is confirmed',
      async () => {
        const next = await source.confirmations({ limit: 10 })
        await next.release()
        return next.confirmations[0]
      },
      PATIENT,
    )
    expect(confirmed).toMatchObject({ replayId: 'replay-1' })
    await consumer.stop()
    await source.close()
  })

  it('gives a new dead-letter queue the longest retention and the size limit of its queue', async () => {
    const queue = `redrive-${randomUUID()}`
    const url = await create(queue, { MaximumMessageSize: '65536' })
    const transport = sqs({ client, queue })
    await transport.open()
    expect(await attributesOf(url.replace(queue, `${queue}-dlq`))).toMatchObject({
      MessageRetentionPeriod: '1209600',
      MaximumMessageSize: '65536',
    })
    await transport.close()
  })

  it('names the queue from which it moved a message', async () => {
    const [queue, failed] = [`redrive-${randomUUID()}`, `redrive-${randomUUID()}`]
    const { QueueArn } = await attributesOf(await create(failed))
    const policy = { deadLetterTargetArn: QueueArn, maxReceiveCount: 1 }
    const url = await create(queue, {
      RedrivePolicy: JSON.stringify(policy),
      VisibilityTimeout: '0',
    })
    await send(url, '{}')
    const source = sqsSource({ client, queue })
    const batch = await until(
      'SQS moves the message',
      async () => {
        await client.send(new ReceiveMessageCommand({ QueueUrl: url, WaitTimeSeconds: 1 }))
        const drained = await source.drain({ limit: 1 })
        return drained.deadLetters.length > 0 && drained
      },
      PATIENT,
    )
    expect(batch.deadLetters[0]).toMatchObject({ origin: queue, reason: 'max_receives' })
    await batch.release()
    await source.close()
  })

  it('delivers a message again after its lease, whatever it does with the old receipt handle', async () => {
    const queue = `redrive-${randomUUID()}`
    const url = await create(queue)
    await send(url, '{}')
    const transport = sqs({ client, queue, lease: '2s', wait: '1s' })
    const { first, delivered } = await receiveFrom(transport)
    const delivery = await first()
    // Stops this thread: no lease is renewed.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000)
    expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
    await until('the message arrives again', () => delivered.length > 1, PATIENT)
    await transport.close()
  })

  it('rejects a lease above 12 hours from the receipt', async () => {
    const QueueUrl = await create(`redrive-${randomUUID()}`)
    await send(QueueUrl, '{}')
    const longest = 43_200
    const ReceiptHandle = await until(
      'the message arrives',
      async () => {
        const { Messages } = await client.send(
          new ReceiveMessageCommand({ QueueUrl, VisibilityTimeout: 60, WaitTimeSeconds: 1 }),
        )
        return Messages?.[0]?.ReceiptHandle
      },
      PATIENT,
    )
    const extend = (VisibilityTimeout: number) =>
      client.send(
        new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }),
      )
    const refused = await until(
      'a second has passed',
      () =>
        extend(longest).then(
          () => undefined,
          (error: unknown) => error,
        ),
      PATIENT,
    )
    expect(refused).toBeInstanceOf(Error)
    await extend(60)
  })

  it('keeps the order of a group while its first message is retried', async () => {
    const queue = `redrive-${randomUUID()}.fifo`
    const url = await create(queue, { FifoQueue: 'true' })
    const handled: unknown[] = []
    for (const body of ['"a"', '"b"', '"c"']) await send(url, body, 'one')
    const consumer = await consume(
      sqs({ client, queue, wait: '1s' }),
      ({ body }, { attempt }) => {
        if (body === 'a' && attempt === 1) throw new Error('it broke')
        handled.push(body)
      },
      { logger: 'off', order: 'lane', retry: { backoff: { kind: 'fixed', delay: '1s' } } },
    )
    await until('all are handled', () => handled.length >= 3, PATIENT)
    expect(handled).toEqual(['a', 'b', 'c'])
    await consumer.stop()
  })
})
