import { type QueueType, topologyOf } from '@redrive/rabbitmq'
import { type Broker, onChannel } from './broker.ts'

const TYPE: QueueType = 'quorum'

/** Makes the source and its dead letters before anybody consumes. */
export async function declareSource(broker: Broker, ...queues: readonly string[]): Promise<void> {
  await onChannel(broker, async (channel) => {
    for (const queue of queues) {
      const { exchange, source, deadLetters } = topologyOf(queue, TYPE)
      await channel.assertExchange(exchange, 'direct', { durable: true })
      for (const { name, arguments: args } of [deadLetters, source]) {
        await channel.assertQueue(name, { durable: true, arguments: args })
      }
      await channel.bindQueue(deadLetters.name, exchange, queue)
    }
  })
}

/** Makes everything, as an administrator does for applications that may not. */
export async function declareAll(broker: Broker, queue: string): Promise<void> {
  await declareSource(broker, queue)
  await onChannel(broker, async (channel) => {
    for (const { name, arguments: args } of topologyOf(queue, TYPE).later) {
      await channel.assertQueue(name, { durable: true, arguments: args })
    }
  })
}

/** Deletes a queue that must be empty: what an operator throws away is not ours to keep. */
export async function deleteEmpty(broker: Broker, ...queues: readonly string[]): Promise<void> {
  await onChannel(broker, async (channel) => {
    for (const queue of queues) {
      const { messageCount } = await channel.checkQueue(queue)
      if (messageCount > 0) throw new Error(`${queue} holds ${messageCount} messages`)
      await channel.deleteQueue(queue)
    }
  })
}
