import { urlsOf } from '@redrive/dev-support'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { describe, expect, it, vi } from 'vitest'
import type { readForeignDeath } from '../src/foreign.ts'
import { managementOf } from './management.ts'
import { onRig, type Rig } from './rig.ts'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')

/**
 * The readers accept any header that their tests generate. This one is an example of a header that they do not expect.
 */
vi.mock(import('../src/foreign.ts'), async (original) => {
  const actual = await original()
  const read: typeof readForeignDeath = (headers, queues) => {
    if ('x-trap' in headers) throw new TypeError('the trap closed')
    return actual.readForeignDeath(headers, queues)
  }
  return { ...actual, readForeignDeath: read }
})

/** Publishes over HTTP, because the client library cannot encode such headers. */
async function publishByHttp(queue: string, headers: Readonly<Record<string, unknown>>) {
  const { api, authorization } = await managementOf('rabbitmq')
  const properties = { message_id: 'big', headers }
  const body = { routing_key: queue, payload: 'big', payload_encoding: 'string', properties }
  const answer = await fetch(`${api}/exchanges/%2F/amq.default/publish`, {
    method: 'POST',
    headers: { authorization },
    body: JSON.stringify(body),
  })
  expect(await answer.json()).toEqual({ routed: true })
}

const publish = (rig: Rig, queue: string, id: string, headers: Readonly<Record<string, unknown>>) =>
  rig.onChannel(async (channel) => {
    channel.publish('', queue, Buffer.from(id), { messageId: id, headers: { ...headers } })
    await channel.waitForConfirms()
  })

const byId = (deadLetters: readonly DrainedDeadLetter[], id: string) =>
  deadLetters.find(({ delivery }) => delivery.id === id)

describe.concurrent('drain', () => {
  it(
    'returns a message that makes a reader fail, with all its headers, next to the others',
    onRig(url, async (rig) => {
      const queue = `${rig.queue}.dlq`
      await rig.makeQueue(queue, { 'x-queue-type': 'quorum' })
      await publish(rig, queue, 'first', {})
      const headers = { 'x-trap': 1, 'x-death': [null], 'redrive-id': 7, nested: { a: [true] } }
      await publish(rig, queue, 'odd', headers)
      await publish(rig, queue, 'last', { trace: 't' })
      const source = rig.source({ deadLetterQueues: [queue] })
      const first = await source.drain({ limit: 10 })
      expect(first.deadLetters).toHaveLength(3)
      await first.abandon()
      await until('they are back', async () => (await rig.count(queue)) === 3)
      // The broker counts deliveries in a header. It must not change the message.
      const batch = await source.drain({ limit: 10 })
      expect(byId(batch.deadLetters, 'odd')).toMatchObject({
        delivery: { id: 'odd', bytes: Buffer.from('odd') },
        origin: rig.queue,
        identity: 'stable',
        problem: { code: 'unreadable', message: 'The headers cannot be read: the trap closed.' },
      })
      expect(byId(batch.deadLetters, 'odd')?.delivery.headers).toEqual(headers)
      expect(byId(batch.deadLetters, 'last')?.problem).toBeUndefined()
      await batch.release()
      expect(await rig.count(queue)).toBe(0)

      await source.putBack(batch.deadLetters)
      await until('they are put back', async () => (await rig.count(queue)) === 3)
      const again = await source.drain({ limit: 10 })
      expect(byId(again.deadLetters, 'odd')?.delivery.headers).toEqual(headers)
      await again.release()
    }),
  )

  it(
    'reports headers that no client can publish again',
    onRig(url, async (rig) => {
      const queue = `${rig.queue}.dlq`
      await rig.makeQueue(queue)
      const headers = { stack: 'x'.repeat(70_000), kept: 'yes' }
      await publishByHttp(queue, headers)
      await publish(rig, queue, 'good', { stack: 'x'.repeat(60_000) })
      const batch = await rig.source({ deadLetterQueues: [queue] }).drain({ limit: 10 })
      const { deadLetters } = batch
      const big = byId(deadLetters, 'big')
      expect(big?.problem?.code).toBe('headers_not_publishable')
      expect(big?.problem?.message).toMatch(/cannot be published .* at most 65536/)
      expect(big?.delivery.headers).toEqual(headers)
      expect(byId(deadLetters, 'good')?.problem).toBeUndefined()
      await batch.release()
    }),
  )
})
