import { MemoryBroker, memory, send } from '@redrive/memory'
import { rabbitmq } from '@redrive/rabbitmq'
import type { Transport } from '@redrive/runtime'
import { connect } from 'amqplib'

/** The queue with orders: how to publish to it, and how to consume it. */
interface Orders {
  readonly transport: Transport
  publish(id: string, order: unknown): Promise<void>
  close(): Promise<void>
}

/** Opens the queue on RabbitMQ, or in this process when there is no address. */
export const openOrders = async (queue: string, url: string | undefined): Promise<Orders> =>
  url === undefined ? inMemory(queue) : onRabbitMq(queue, url)

function inMemory(queue: string): Orders {
  const broker = new MemoryBroker()
  return {
    transport: memory({ broker, queue }),
    publish: async (id, order) => void send(broker, queue, order, { id }),
    close: async () => broker.close(),
  }
}

async function onRabbitMq(queue: string, url: string): Promise<Orders> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  return {
    transport: rabbitmq({ url, queue }),
    async publish(messageId, order) {
      const body = Buffer.from(JSON.stringify(order))
      channel.sendToQueue(queue, body, { messageId, persistent: true, mandatory: true })
      await channel.waitForConfirms()
    },
    close: () => connection.close(),
  }
}
