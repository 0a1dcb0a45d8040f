import { randomUUID } from 'node:crypto'
import { consume, type ConsumeOptions } from '@redrive/runtime'
import { urlOf } from '@redrive/dev-support'
import { afterAll, describe, expect, it } from 'vitest'
import { type SqsRecord, sqsHandler, sqsSource } from '../src/index.ts'
import { clientOf, sqsWorld } from './world.ts'

const client = clientOf(await urlOf('elasticmq'))
afterAll(() => client.destroy())

const record = (body: string, group?: string): SqsRecord => ({
  messageId: randomUUID(),
  receiptHandle: 'handle',
  body: JSON.stringify(body),
  attributes: { ApproximateReceiveCount: '1', MessageGroupId: group },
  messageAttributes: { tenant: { dataType: 'String', stringValue: 'a' } },
})

async function lambdaWorld(
  handle: (body: unknown) => unknown,
  { isFifo = false, ...options }: ConsumeOptions & { readonly isFifo?: boolean } = {},
) {
  const world = await sqsWorld(client, { isFifo })
  const handler = sqsHandler({ client, queue: world.queue }, (transport) =>
    consume(transport, ({ body }) => handle(body) as Promise<void>, { logger: 'off', ...options }),
  )
  return { world, handler, source: sqsSource({ client, queue: world.queue }) }
}

const failures = (...records: readonly (SqsRecord | undefined)[]) => ({
  batchItemFailures: records.map((one) => ({ itemIdentifier: one?.messageId })),
})

describe.concurrent('a handler for Lambda', () => {
  it('reports no failure for handled messages, more than may run at the same time', async () => {
    const handled: unknown[] = []
    const { world, handler } = await lambdaWorld((body) => handled.push(body), { concurrency: 2 })
    const records = ['a', 'b', 'c', 'd', 'e'].map((body) => record(body))
    expect(await handler({ Records: records })).toEqual(failures())
    expect(new Set(handled)).toEqual(new Set(['a', 'b', 'c', 'd', 'e']))
    expect(handled.length).toBe(5)
    await world.close()
  })

  it('lets Lambda delete a message whose copy is stored: a retry, or a dead letter', async () => {
    const { world, handler, source } = await lambdaWorld(
      (body) => {
        if (body !== 'good') throw new Error(String(body))
      },
      { retry: { attempts: 1 } },
    )
    const bad = record('bad')
    expect(await handler({ Records: [record('good'), bad] })).toEqual(failures())
    expect(await source.depth()).toBe(1)
    const batch = await source.drain({ limit: 1 })
    expect(batch.deadLetters[0]).toMatchObject({
      delivery: { id: bad.messageId, headers: { tenant: 'a' }, cycle: { attempts: 1 } },
    })
    await batch.release()
    await world.close()
  })

  it('reports messages that are not finished before the end of the function', async () => {
    const { world, handler } = await lambdaWorld((body) =>
      body === 'slow' ? new Promise(() => undefined) : undefined,
    )
    const slow = record('slow')
    const context = { getRemainingTimeInMillis: () => 1_500 }
    expect(await handler({ Records: [record('fast'), slow] }, context)).toEqual(failures(slow))
    await world.close()
  })

  it('reports the later messages of a group, so that none overtakes a message that is not finished', async () => {
    const handled: unknown[] = []
    const { world, handler } = await lambdaWorld(
      (body) => {
        handled.push(body)
        return body === 'a1' ? new Promise(() => undefined) : undefined
      },
      { isFifo: true, order: 'lane' },
    )
    const records = ['a1', 'a2', 'b1', 'b2'].map((body) => record(body, body[0]))
    const context = { getRemainingTimeInMillis: () => 1_500 }
    const response = await handler({ Records: records }, context)
    expect(response).toEqual(failures(records[0], records[1]))
    expect(handled).toEqual(['a1', 'b1', 'b2'])
    await world.close()
  })
})
