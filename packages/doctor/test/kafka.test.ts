import { describe } from 'vitest'
import { kafkaSuite } from './kafka.suite.ts'

describe('Kafka, one broker', () => {
  // Findings of every single broker; the cluster of the proof has none.
  kafkaSuite('kafka', 1, [
    'kafka.few-brokers',
    'kafka.offsets-replication',
    'kafka.replication-factor',
    'kafka.transaction-log-min-isr',
    'kafka.transaction-log-replication',
  ])
})
