import { type QueueType, type Topology, topologyOf } from '@redrive/rabbitmq'
import { type Broker, onChannel } from './broker.ts'

const TYPE: QueueType = 'quorum'

/** Creates the sources and their dead-letter queues before any consumer starts. */
export async function declareSource(broker: Broker, ...queues: readonly string[]): Promise<void> {
  for (const queue of queues) await declareParts(broker, topologyOf(queue, TYPE))
}

/** Creates the source for consumers in lane order, and its dead-letter queue. */
export const declareOrdered = (broker: Broker, queue: string): Promise<void> =>
  declareParts(broker, topologyOf(queue, TYPE, queue, 'lane'))

async function declareParts(
  broker: Broker,
  { exchange, source, deadLetters }: Topology,
): Promise<void> {
  await onChannel(broker, async (channel) => {
    await channel.assertExchange(exchange, 'direct', { durable: true })
    for (const { name, arguments: args } of [deadLetters, source]) {
      await channel.assertQueue(name, { durable: true, arguments: args })
    }
    await channel.bindQueue(deadLetters.name, exchange, source.name)
  })
}

/** Creates all queues, as an administrator does for applications without that permission. */
export async function declareAll(broker: Broker, queue: string): Promise<void> {
  await declareSource(broker, queue)
  await onChannel(broker, async (channel) => {
    for (const { name, arguments: args } of topologyOf(queue, TYPE).later) {
      await channel.assertQueue(name, { durable: true, arguments: args })
    }
  })
}

/** Deletes a queue that must be empty. Redrive does not protect messages that an operator deletes. */
export async function deleteEmpty(broker: Broker, ...queues: readonly string[]): Promise<void> {
  for (const queue of queues) {
    const { messageCount } = await onChannel(broker, (channel) => channel.checkQueue(queue))
    if (messageCount > 0) throw new Error(`${queue} holds ${messageCount} messages`)
    // Separate from the check, because a repeated check would not find the queue any more.
    await onChannel(broker, (channel) => channel.deleteQueue(queue))
  }
}
