import { describe } from 'vitest'
import { kafkaSuite } from './kafka.suite.ts'

describe('Kafka, one broker', () => {
  // One broker is what it is: on the cluster of the proof nothing at all is found.
  kafkaSuite('kafka', 1, [
    'kafka.few-brokers',
    'kafka.offsets-replication',
    'kafka.replication-factor',
    'kafka.transaction-log-min-isr',
    'kafka.transaction-log-replication',
  ])
})
