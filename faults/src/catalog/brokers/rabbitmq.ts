import { rabbitmq, rabbitmqSink, rabbitmqSource, topologyOf } from '@redrive/rabbitmq'
import { brokerAt, onChannel } from '../../rabbitmq/broker.ts'
import type { Broker } from './parts.ts'

export const broker: Broker = {
  transport: ({ amqpUrl: url, queue }) => rabbitmq({ url, queue }),
  source: ({ amqpUrl: url, queue }) => rabbitmqSource({ url, queue }),
  sink: ({ amqpUrl: url, queue }) => rabbitmqSink({ url, routingKey: queue }),
  declare: () => Promise.resolve(),
  forget: ({ amqpUrl, queue }) =>
    onChannel(brokerAt([amqpUrl]), async (channel) => {
      const { exchange, source, deadLetters, later } = topologyOf(queue, 'quorum')
      for (const { name } of [source, deadLetters, ...later]) await channel.deleteQueue(name)
      await channel.deleteExchange(exchange)
    }),
}
