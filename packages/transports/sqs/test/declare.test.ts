import { once } from 'node:events'
import { deadLetter, refusal, urlOf } from '@redrive/dev-support'
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { sqs, sqsSink, sqsSource, topologyOf } from '../src/index.ts'
import { intercept } from './intercept.ts'
import { receiveFrom } from './receive.ts'
import { withRedrivePolicy } from './redrive-policy.ts'
import { clientOf, sqsWorld } from './world.ts'

const client = clientOf(await urlOf('elasticmq'))
afterAll(() => client.destroy())

describe('the queues of a consumer', () => {
  it('are different for a standard queue and a FIFO queue with the same name', () => {
    const [standard, fifo] = [topologyOf('orders'), topologyOf('orders.fifo')]
    expect(fifo).toMatchObject({ deadLetters: 'orders-dlq.fifo', replayed: 'orders-fifo-replayed' })
    expect(standard).toMatchObject({ deadLetters: 'orders-dlq', replayed: 'orders-replayed' })
  })

  it('are looked up in the account that the redrive policy names, and not created there', async () => {
    const account = '111122223333'
    const world = await sqsWorld(client)
    const asked: unknown[] = []
    const created: unknown[] = []
    let isMissing = false
    const other = intercept(client, async (command, send) => {
      if (command instanceof CreateQueueCommand) created.push(command.input.QueueName)
      if (command instanceof GetQueueUrlCommand) {
        if (isMissing && command.input.QueueName === 'failed') command.input.QueueName = 'nowhere'
        asked.push(command.input)
      }
      const response = await send()
      if (!(command instanceof GetQueueAttributesCommand)) return response
      // ElasticMQ has one account.
      const deadLetterTargetArn = `arn:aws:sqs:eu-west-1:${account}:failed`
      const policy = { RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: 10 }) }
      return { Attributes: command.input.QueueUrl === world.url ? policy : {} }
    })
    const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: 'failed' }))
    const transport = sqs({ client: other, queue: world.queue })
    await transport.open()
    expect(asked).toContainEqual({ QueueName: 'failed', QueueOwnerAWSAccountId: account })
    await transport.close()
    isMissing = true
    expect(QueueUrl).toContain('failed')
    const absent = sqs({ client: other, queue: world.queue })
    expect((await refusal(absent.open())).message).toContain('The redrive policy names it.')
    await absent.close()
    expect(created).toEqual([topologyOf(world.queue).replayed])
    await world.close()
  })

  it.each(['the queue', 'the queue of confirmations'])(
    'have no dead letters in %s',
    async (which) => {
      const world = await sqsWorld(client)
      const { queue } = world
      const deadLetters = which === 'the queue' ? queue : topologyOf(queue).replayed
      const transport = sqs({ client, queue, deadLetters })
      expect(await refusal(transport.open())).toMatchObject({
        code: 'TOPOLOGY_MISMATCH',
        message: expect.stringContaining(`"${deadLetters}" cannot be its own`) as string,
      })
      await transport.close()
      await world.close()
    },
  )

  it('have their own size limits: a dead letter that only its queue is too small for gives its limit', async () => {
    const { world, dlqUrl, queue, dlq, close } = await withRedrivePolicy(client)
    // ElasticMQ does not have this attribute.
    const limited = intercept(client, async (command, send) => {
      const response = (await send()) as { readonly Attributes?: object }
      return command instanceof GetQueueAttributesCommand && command.input.QueueUrl === dlqUrl
        ? { Attributes: { ...response.Attributes, MaximumMessageSize: '1024' } }
        : response
    })
    await world.send({ bytes: new TextEncoder().encode('x'.repeat(2_000)) })
    const transport = world.transport(undefined, { client: limited })
    const { first } = await receiveFrom(transport)
    expect(await transport.enact(await first(), deadLetter())).toMatchObject({
      kind: 'refused',
      isTooLarge: true,
      error: {
        message: expect.stringContaining(`1024 bytes that the queue "${dlq}" allows`) as string,
      },
    })
    expect(queue).not.toBe(dlq)
    await transport.close({ drainMs: 0 })
    await close()
  })

  it('have a warning when SQS moves messages before Redrive can quarantine them', async () => {
    const { queue, close } = await withRedrivePolicy(client)
    const transport = sqs({ client, queue })
    const warned = once(process, 'warning')
    await transport.open({ deadLetterRetentionMs: 60_000, crashLimit: 6 })
    const [warning] = (await warned) as [Error]
    expect(warning.message).toContain('maxReceiveCount 1')
    expect(warning.message).toContain('at least 6')
    await transport.close()
    await close()
  })
})

it('a client that Redrive created ends with its owner', async () => {
  const destroyed = vi.spyOn(SQSClient.prototype, 'destroy')
  const queue = 'orders'
  await sqs({ queue }).close()
  await sqsSource({ queue }).close()
  await sqsSink({ queue }).close()
  expect(destroyed).toHaveBeenCalledTimes(3)
  const transport = sqs({ client, queue })
  await transport.close()
  expect(destroyed).toHaveBeenCalledTimes(3)
  destroyed.mockRestore()
})
