import { randomUUID } from 'node:crypto'
import type { OutboundEvent } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { kafkaSink } from '../src/index.ts'
import { onRig, type Rig } from './rig.ts'

const PARTITIONS = 5
const signal = new AbortController().signal

const event = (number: number, lane?: string): OutboundEvent => ({
  id: `event-${number}`,
  key: `key-${number}`,
  type: 'order.placed',
  lane,
  at: 1_700_000_000_000,
  bytes: Buffer.from(JSON.stringify({ number })),
  contentType: 'application/json',
  headers: { trace: 'abc' },
})

/** Events that are published through Kafka. */
export function sinks(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: PARTITIONS })

  describe('a sink', () => {
    it(
      'resolves when the events are stored, and a consumer receives them with their id and key',
      on(async (rig) => {
        const sink = kafkaSink({ brokers, topic: rig.topic })
        rig.atEnd(() => sink.close())
        const sentAt = Date.now()
        await sink.send([event(1, 'a'), event(2, 'a'), event(3)], { signal })
        const { inbox } = await rig.start()
        await inbox.nth(3)
        const found = new Map(inbox.deliveries.map((delivery) => [delivery.id, delivery]))
        const first = found.get('event-1')
        expect(first).toMatchObject({
          key: 'key-1',
          type: 'order.placed',
          lane: 'a',
          contentType: 'application/json',
          headers: { trace: 'abc', ce_time: '2023-11-14T22:13:20.000Z' },
        })
        // Retention counts from now, even for an old event.
        expect(first?.raw.timestamp).toBeGreaterThanOrEqual(sentAt)
        expect(Buffer.from(first?.bytes ?? []).toString()).toBe('{"number":1}')
        expect(found.get('event-2')?.raw.partition).toBe(first?.raw.partition)
        expect(found.get('event-3')?.lane).toBeUndefined()
      }),
    )

    it(
      'uses the same partition for a key as Java producers',
      on(async (rig) => {
        const sink = kafkaSink({ brokers, topic: rig.topic })
        rig.atEnd(() => sink.close())
        await sink.send([event(1, 'order-42')], { signal })
        const { inbox } = await rig.start()
        const { raw } = await inbox.nth(1)
        expect(raw.partition).toBe(javaPartition('order-42', PARTITIONS))
      }),
    )

    it('rejects when the topic does not exist, and is healthy when the brokers answer', async () => {
      const sink = kafkaSink({ brokers, topic: `nowhere-${randomUUID()}` })
      await expect(sink.send([event(1)], { signal })).rejects.toThrow(/Unknown topic|topic/i)
      await expect(sink.healthCheck()).resolves.toBeUndefined()
      await sink.close()
    })
  })
}

/** Murmur2 with the seed of Kafka, as an independent implementation. */
function javaPartition(key: string, count: number): number {
  const bytes = Buffer.from(key)
  const m = 0x5bd1e995
  let hash = 0x9747b28c ^ bytes.length
  let at = 0
  for (; at + 4 <= bytes.length; at += 4) {
    let k = Math.imul(bytes.readInt32LE(at), m)
    k = Math.imul(k ^ (k >>> 24), m)
    hash = Math.imul(hash, m) ^ k
  }
  const left = bytes.length - at
  if (left >= 3) hash ^= (bytes[at + 2] as number) << 16
  if (left >= 2) hash ^= (bytes[at + 1] as number) << 8
  if (left >= 1) hash = Math.imul(hash ^ (bytes[at] as number), m)
  hash = Math.imul(hash ^ (hash >>> 13), m)
  return ((hash ^ (hash >>> 15)) & 0x7fffffff) % count
}
