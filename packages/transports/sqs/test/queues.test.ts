import { consume } from '@redrive/runtime'
import { refusal, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs'
import { afterAll, describe, expect, it } from 'vitest'
import { type SqsClient, sqs, sqsSource } from '../src/index.ts'
import { withRedrivePolicy } from './redrive-policy.ts'
import { clientOf, sqsWorld } from './world.ts'

const client = clientOf(await urlOf('elasticmq'))
afterAll(() => client.destroy())

describe.concurrent('an existing queue', () => {
  it('with waiting messages is consumed and not changed', async () => {
    const world = await sqsWorld(client)
    const ids = new Set<string>()
    for (let number = 0; number < 25; number++)
      ids.add(await world.send({ bytes: new TextEncoder().encode(`{"number":${number}}`) }))
    const read = () =>
      client.send(new GetQueueAttributesCommand({ QueueUrl: world.url, AttributeNames: ['All'] }))
    const { Attributes: before } = await read()
    const handled = new Set<string>()
    const consumer = await consume(
      sqs({ client, queue: world.queue, wait: '1s' }),
      ({ id }) => void handled.add(id),
      { logger: 'off' },
    )
    await until('all waiting messages are handled', () => handled.size === ids.size)
    await until('none is left', async () => (await world.backlog()) === 0)
    await consumer.stop()
    expect(handled).toEqual(ids)
    const { Attributes: after } = await read()
    expect(after?.['LastModifiedTimestamp']).toBe(before?.['LastModifiedTimestamp'])
    await world.close()
  })

  it('with a redrive policy keeps its dead-letter queue, which then has the dead letters', async () => {
    const { queue, dlq, world, close } = await withRedrivePolicy(client)
    const consumer = await consume(
      sqs({ client, queue, wait: '1s' }),
      () => Promise.reject(new Error('it broke')),
      { logger: 'off', retry: { attempts: 1 } },
    )
    await world.send({ bytes: new TextEncoder().encode('{}') })
    const source = sqsSource({ client, queue })
    await until('the dead letter is stored', async () => (await source.depth()) === 1)
    await consumer.stop()
    expect(await source.queues()).toEqual([{ name: dlq, depth: 1 }])
    const batch = await source.drain({ limit: 1 })
    expect(batch.deadLetters[0]?.reason).not.toBe('max_receives')
    await batch.release()
    await close()
  })

  it('is required, and the error names the fix', async () => {
    const absent = sqs({ client, queue: 'nowhere' })
    expect(await refusal(absent.open())).toMatchObject({
      code: 'TOPOLOGY_MISMATCH',
      message:
        'SQS has no queue "nowhere". Create it, or correct the name, the region or the account.',
    })
    await absent.close()
  })

  it('gets no new queues with verify, neither of a consumer nor of a control plane', async () => {
    const world = await sqsWorld(client)
    const options = { client, queue: world.queue, topology: 'verify' } as const
    const transport = sqs(options)
    expect((await refusal(transport.open())).message).toContain(`"${world.queue}-dlq"`)
    await transport.close()
    const source = sqsSource(options)
    expect((await source.drain({ limit: 1 })).deadLetters).toEqual([])
    expect(await source.depth()).toBe(0)
    await source.close()
    await world.close()
  })

  it('gets a dead-letter queue with the retention of the policy, at most 14 days', async () => {
    for (const [deadLetterRetentionMs, seconds] of [
      [3_600_000, '3600'],
      [Number.POSITIVE_INFINITY, '1209600'],
    ] as const) {
      const world = await sqsWorld(client)
      const created: unknown[] = []
      const send = (command: CreateQueueCommand, options: object) => {
        if (command instanceof CreateQueueCommand) created.push(command.input)
        return client.send(command, options)
      }
      const transport = sqs({
        client: { send: send as SqsClient['send'] },
        queue: world.queue,
      })
      await transport.open({ deadLetterRetentionMs })
      expect(created[0]).toMatchObject({
        QueueName: `${world.queue}-dlq`,
        Attributes: { MessageRetentionPeriod: seconds },
      })
      await transport.close()
      await world.close()
    }
  })
})

describe.concurrent('dead letters of a plain consumer', () => {
  it('are drained with their attributes, and a replay reaches the queue again', async () => {
    const { queue, url, giveUp, close } = await withRedrivePolicy(client)
    await giveUp('plain text')
    const source = sqsSource({ client, queue })
    await until('SQS has moved the message', async () => (await source.depth()) === 1)
    const batch = await source.drain({ limit: 10 })
    const [deadLetter] = batch.deadLetters
    expect(deadLetter).toMatchObject({
      origin: queue,
      class: 'unknown',
      identity: 'stable',
      quarantined: false,
      delivery: { headers: { count: '7', hash: 'AP8=' } },
    })
    expect(new TextDecoder().decode(deadLetter?.delivery.bytes)).toBe('plain text')
    if (deadLetter === undefined) return
    await source.publish({ deadLetter, replayId: 'replay-1' })
    await batch.release()
    expect(await source.depth()).toBe(0)
    const { Messages } = await client.send(
      new ReceiveMessageCommand({ QueueUrl: url, MessageAttributeNames: ['All'] }),
    )
    const attributes = Messages?.[0]?.MessageAttributes
    expect(Messages?.[0]?.Body).toBe('plain text')
    expect(attributes?.['count']).toMatchObject({ DataType: 'Number', StringValue: '7' })
    expect([...(attributes?.['hash']?.BinaryValue ?? [])]).toEqual([0, 255])
    expect(attributes?.['redrive']?.StringValue).toContain('"redrive-replay-id":"replay-1"')
    await close()
  })

  it('are put back as they were, and keep their id', async () => {
    const { queue, giveUp, close } = await withRedrivePolicy(client)
    await giveUp('plain text')
    const source = sqsSource({ client, queue })
    await until('SQS has moved the message', async () => (await source.depth()) === 1)
    const first = await source.drain({ limit: 1 })
    await first.release()
    await source.putBack(first.deadLetters)
    const second = await source.drain({ limit: 1 })
    const [before, after] = [first, second].map(({ deadLetters }) => deadLetters[0]?.delivery)
    expect(after?.id).toBe(before?.id)
    expect(after?.bytes).toEqual(before?.bytes)
    expect(after?.headers).toEqual(before?.headers)
    await second.release()
    await close()
  })
})
