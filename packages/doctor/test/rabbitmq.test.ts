import { describe } from 'vitest'
import { rabbitmqSuite } from './rabbitmq.suite.ts'

describe('RabbitMQ, one node', () => {
  // Findings of every single node; the cluster of the proof has none.
  rabbitmqSuite('rabbitmq', ['rabbitmq.one-node'])
})
