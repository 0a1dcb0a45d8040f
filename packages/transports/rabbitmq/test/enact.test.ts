import { type Decision, FIRST_CYCLE, type Failure, type RetryAt } from '@redrive/core'
import type { ConsumeMessage } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { HandOffs } from '../src/enact.ts'
import { type RabbitMqDelivery, toDelivery } from '../src/delivery.ts'
import type { Outgoing, Publisher } from '../src/publish.ts'
import { delayQueue, deadLetterQueue, topologyOf } from '../src/index.ts'
import { UnackedDeliveries } from '../src/unacked.ts'

const QUEUE = 'orders'

/** Hand-offs with a publisher that records messages; `refuse` may throw like the client library. */
function handOffs(refuse: (outgoing: Outgoing, nth: number) => void = () => undefined) {
  const sent: Outgoing[] = []
  const publisher = {
    ensure: () => Promise.resolve(),
    inTime: (proof: Promise<void>) => proof,
    send: (outgoing: Outgoing) => {
      sent.push(outgoing)
      refuse(outgoing, sent.length)
      return Promise.resolve()
    },
  }
  const made = new HandOffs({
    publisher: publisher as unknown as Publisher,
    topology: topologyOf(QUEUE, 'quorum'),
    mode: 'declare',
    budgetBytes: 8_192,
    deadLetterRetentionMs: 60_000,
    handler: 'charge',
  })
  const unsettled = new UnackedDeliveries({ ack: () => undefined, nack: () => undefined })
  const enact = (decision: Decision) => {
    const one = delivery()
    unsettled.add(one)
    return made.enact(one, decision, unsettled)
  }
  return { sent, enact }
}

const delivery = (): RabbitMqDelivery =>
  toDelivery(QUEUE, {
    content: Buffer.from('{}'),
    fields: { deliveryTag: 1, exchange: '', routingKey: QUEUE },
    properties: { messageId: 'm1', headers: { tenant: 't1' } },
  } as unknown as ConsumeMessage)

const failure = { class: 'business', stack: undefined } as Failure
const retryIn = (delayMs: number): RetryAt => ({
  kind: 'retryAt',
  reason: 'backoff',
  dueAt: delayMs,
  delayMs,
  cycle: FIRST_CYCLE,
  failure,
})

describe('a copy', () => {
  it('for a delay queue has the time to live of its queue', async () => {
    const { sent, enact } = handOffs()
    await enact(retryIn(1_500))
    expect(sent[0]?.routingKey).toBe(delayQueue(QUEUE, 2_000))
    expect(sent[0]?.properties.expiration).toBe('2000')
  })

  it('for the source never expires', async () => {
    const { sent, enact } = handOffs()
    await enact(retryIn(0))
    await enact({ kind: 'pause', reason: 'requested', until: 0, failure: undefined })
    expect(sent.map(({ routingKey }) => routingKey)).toEqual([QUEUE, QUEUE])
    expect(sent.map(({ properties }) => properties.expiration)).toEqual([undefined, undefined])
  })

  it('for the dead-letter queue has the retention of the policy', async () => {
    const { sent, enact } = handOffs()
    await enact({ kind: 'deadLetter', reason: 'terminal', failure, cycle: FIRST_CYCLE })
    expect(sent[0]?.routingKey).toBe(deadLetterQueue(QUEUE))
    expect(sent[0]?.properties.expiration).toBe('60000')
  })

  it('omits the history, then stores headers as JSON, when they cannot be encoded', async () => {
    const { sent, enact } = handOffs((_, nth) => {
      if (nth === 1) throw new RangeError('too long')
      if (nth === 2) throw new TypeError('unknown type')
    })
    expect(await enact(retryIn(0))).toMatchObject({ kind: 'done', destination: 'retry' })
    const headers = sent.map(({ properties }) => properties.headers as Record<string, unknown>)
    expect(headers.map(({ tenant }) => tenant)).toEqual(['t1', 't1', undefined])
    expect(headers[2]?.['redrive-aside']).toContain('t1')
  })

  it('is not sent again after any other error', async () => {
    const { sent, enact } = handOffs(() => {
      throw new Error('out of memory')
    })
    expect(await enact(retryIn(0))).toMatchObject({ kind: 'unknown' })
    expect(sent).toHaveLength(1)
  })
})
