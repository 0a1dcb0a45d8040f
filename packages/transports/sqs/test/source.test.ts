import { encodeHeaders } from '@redrive/core'
import { failedCycle, urlOf } from '@redrive/dev-support'
import type { DeadLetterSource, DrainedBatch } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { DeleteMessageBatchCommand } from '@aws-sdk/client-sqs'
import { afterAll, describe, expect, it } from 'vitest'
import { toValue } from '../src/attributes.ts'
import { sqsSource } from '../src/index.ts'
import { intercept } from './intercept.ts'
import { withRedrivePolicy } from './redrive-policy.ts'
import { clientOf } from './world.ts'

const client = clientOf(await urlOf('elasticmq'))
afterAll(() => client.destroy())

/** Drains until a batch has a dead letter. */
const drainOne = (source: DeadLetterSource): Promise<DrainedBatch> =>
  until('a dead letter is drained', async () => {
    const batch = await source.drain({ limit: 10 })
    return batch.deadLetters.length > 0 && batch
  })

async function drainAndRelease(source: DeadLetterSource) {
  const batch = await drainOne(source)
  await batch.release()
  const [deadLetter] = batch.deadLetters
  if (deadLetter === undefined) throw new Error('no dead letter')
  return deadLetter
}

describe.concurrent('a dead letter', () => {
  it('of a FIFO queue that is drained and put back twice within 5 minutes is stored both times', async () => {
    const { queue, giveUp, close } = await withRedrivePolicy(client, { isFifo: true })
    await giveUp('text')
    const source = sqsSource({ client, queue })
    const first = await drainAndRelease(source)
    await source.putBack([first])
    const second = await drainAndRelease(source)
    expect(second.delivery.id).toBe(first.delivery.id)
    await source.putBack([second])
    expect(await source.depth()).toBe(1)
    // A repeated put-back of the same copy is stored once.
    await source.putBack([second])
    expect(await source.depth()).toBe(1)
    await close()
  })

  it('of another queue keeps its origin, reason and history when it is put back', async () => {
    const { queue, dlqUrl, close } = await withRedrivePolicy(client)
    const other = await withRedrivePolicy(client, { dlqUrl })
    await other.giveUp('text')
    const source = sqsSource({ client, queue })
    const before = await drainAndRelease(source)
    expect(before).toMatchObject({ origin: other.queue, reason: 'max_receives' })
    await source.putBack([before])
    const after = await drainAndRelease(source)
    expect(after).toMatchObject({
      origin: other.queue,
      reason: 'max_receives',
      delivery: { id: before.delivery.id, cycle: before.delivery.cycle },
    })
    await source.publish({ deadLetter: after, replayId: 'replay-1' })
    expect(await other.world.backlog()).toBe(1)
    expect(await source.lag()).toBe(0)
    await other.close()
    await close()
  })

  it('comes from the queue that SQS names, whatever its producer claims', async () => {
    const { queue, giveUp, close } = await withRedrivePolicy(client)
    await giveUp('text', { 'redrive-source': toValue('String', 'payroll') })
    const source = sqsSource({ client, queue })
    const { origin, delivery } = await drainAndRelease(source)
    expect([origin, delivery.source]).toEqual([queue, queue])
    await close()
  })

  it('that SQS moved while it waited for a retry has the reason of SQS, after the failures before it', async () => {
    const { queue, giveUp, close } = await withRedrivePolicy(client)
    const state = { id: 'order-1', key: 'order-1', source: queue, replayId: undefined }
    const { headers } = encodeHeaders({ ...state, cycle: failedCycle(2), reason: 'backoff' })
    await giveUp('text', { redrive: toValue('String', JSON.stringify(headers)) })
    const source = sqsSource({ client, queue })
    const { reason, delivery } = await drainAndRelease(source)
    expect(reason).toBe('max_receives')
    expect(delivery.id).toBe('order-1')
    expect(delivery.cycle.attempts).toBe(3)
    expect(delivery.cycle.history.map(({ code }) => code)).toEqual([
      undefined,
      undefined,
      'MAX_RECEIVE_COUNT',
    ])
    await close()
  })

  it('whose release fails is available again, and a repeated release still fails', async () => {
    const { queue, giveUp, close } = await withRedrivePolicy(client)
    await giveUp('text')
    const cut = intercept(client, (command, send) =>
      command instanceof DeleteMessageBatchCommand
        ? Promise.reject(new Error('socket hang up'))
        : send(),
    )
    const broken = sqsSource({ client: cut, queue })
    const batch = await drainOne(broken)
    await expect(batch.release()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    // Its lease of a minute did not expire.
    const source = sqsSource({ client, queue })
    const again = await drainAndRelease(source)
    expect(again.delivery.id).toBe(batch.deadLetters[0]?.delivery.id)
    await expect(batch.release()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await broken.close()
    await close()
  })
})
