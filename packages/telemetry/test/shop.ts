import { GUARDS_OFF } from '@redrive/dev-support'
import { MemoryBroker, memory, memorySource, send } from '@redrive/memory'
import { type ConsumeOptions, consume, type Handler } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { onTestFinished } from 'vitest'

/** A broker in memory whose consumer runs on a fake clock. Everything ends with the test. */
export function shop() {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const queue = { broker, queue: 'orders' }
  return {
    clock,
    send: (body: unknown, headers: Readonly<Record<string, unknown>> = {}) =>
      send(broker, 'orders', body, { headers }),
    start: async (handler: Handler, options: ConsumeOptions = {}) => {
      const policy = { ...GUARDS_OFF, concurrency: 10, logger: 'off' as const, name: 'billing' }
      const consumer = await consume(memory(queue), handler, { ...policy, ...options, clock })
      onTestFinished(() => consumer.stop({ drain: 0 }))
      return consumer
    },
    /** Replays all dead letters. */
    replay: async (replayId: string) => {
      const source = memorySource(queue)
      const batch = await source.drain({ limit: 100 })
      for (const deadLetter of batch.deadLetters) await source.publish({ deadLetter, replayId })
      await batch.release()
      await source.close()
    },
  }
}

export class PriceMismatch extends Error {
  override readonly name = 'PriceMismatch'
}

export const unreachable = () =>
  Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), { code: 'ECONNREFUSED' })
