import { describe } from 'vitest'
import { rabbitmqSuite } from './rabbitmq.suite.ts'

describe('RabbitMQ, one node', () => {
  // One node is what it is: on the cluster of the proof nothing at all is found.
  rabbitmqSuite('rabbitmq', ['rabbitmq.one-node'])
})
