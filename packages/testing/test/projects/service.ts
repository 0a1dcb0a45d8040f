import { business } from '@redrive/core'
import { MemoryBroker, memory, send } from '@redrive/memory'
import { consume, type Message } from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'

class CardDeclined extends Error {}

/** Handles two orders, without top-level await, so that it is a program in CommonJS, too. */
async function main(): Promise<void> {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const handled: string[] = []
  const consumer = await consume(
    memory({ broker, queue: 'orders' }),
    async ({ body }: Message, { attempt }) => {
      if (body === 'declined') throw new CardDeclined('declined')
      if (attempt === 1) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
      handled.push(`${String(body)} in attempt ${attempt}`)
    },
    { classify: [business(CardDeclined)], clock, logger: 'off' },
  )
  for (const order of ['paid', 'declined']) send(broker, 'orders', order)
  await clock.advance('5m')
  await consumer.stop()
  console.log(`${handled.join()}, dead letters: ${broker.depth('orders.dlq')}`)
}

void main()
