import type { OutboundEvent } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { rabbitmqSink } from '../src/index.ts'
import { onRig, type Rig, until } from './rig.ts'

const event = (changes: Partial<OutboundEvent> = {}): OutboundEvent => ({
  id: 'event-1',
  key: 'order 1 é%',
  type: 'order.placed',
  lane: undefined,
  at: 1_700_000_000_000,
  bytes: new Uint8Array([0, 255, 128]),
  contentType: 'application/octet-stream',
  headers: { traceparent: '00-1' },
  ...changes,
})

const { signal } = new AbortController()

export function sinks(url: string): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('a sink', () => {
    it(
      'stores accepted events unchanged: a consumer receives id, key, type, bytes and headers',
      on(async (rig) => {
        const { inbox } = await rig.start()
        const sink = rabbitmqSink({ url, routingKey: rig.queue })
        await sink.send([event()], { signal })
        const delivery = await inbox.nth(1)
        expect(delivery).toMatchObject({
          id: 'event-1',
          key: 'order 1 é%',
          type: 'order.placed',
          contentType: 'application/octet-stream',
        })
        expect(Uint8Array.from(delivery.bytes)).toEqual(new Uint8Array([0, 255, 128]))
        expect({ ...delivery.headers }).toMatchObject({ traceparent: '00-1' })
        await sink.close()
      }),
    )

    it(
      'rejects a batch with an event that cannot be encoded, and stores the others',
      on(async (rig) => {
        await rig.makeQueue(rig.queue)
        const sink = rabbitmqSink({ url, routingKey: rig.queue })
        const events = [event(), event({ id: 'event-2', type: 'x'.repeat(256) })]
        await expect(sink.send(events, { signal })).rejects.toThrow(/type/)
        await until('the first one is stored', async () => (await rig.count(rig.queue)) === 1)
        await sink.close()
      }),
    )

    it(
      'rejects an event that the broker cannot route',
      on(async (rig) => {
        const sink = rabbitmqSink({ url, routingKey: ({ type }) => `${rig.queue}.${type}` })
        const refusal = sink.send([event()], { signal })
        await expect(refusal).rejects.toThrow('Check that the queue exists and is bound.')
        await expect(refusal).rejects.toMatchObject({ code: 'UNROUTABLE' })
        await sink.close()
      }),
    )

    it(
      'reports an event for a full queue as a transient failure that names the queue',
      on(async (rig) => {
        await rig.makeQueue(rig.queue, { 'x-max-length': 1, 'x-overflow': 'reject-publish' })
        const sink = rabbitmqSink({ url, routingKey: rig.queue })
        await sink.send([event()], { signal })
        await expect(sink.send([event()], { signal })).rejects.toMatchObject({
          code: 'OUTCOME_UNKNOWN',
          message: expect.stringContaining(`rejected a message to queue ${rig.queue}`) as string,
        })
        await sink.close()
      }),
    )
  })
}
