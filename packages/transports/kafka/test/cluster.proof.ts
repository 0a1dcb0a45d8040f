import { services, urlsOf } from '@redrive/dev-support'
import { exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'
import { kafkaWorld } from './world.ts'

const brokers = await urlsOf('kafka-cluster')

exerciseTransport({
  runner: { describe, it },
  name: 'kafka, three brokers',
  capabilities: CAPABILITIES,
  // If all ran concurrently, an answer could take longer than the timeouts.
  open: () => kafkaWorld(brokers, { confirmTimeout: '60s' }),
  // One broker stops and restarts; the others become leaders of its partitions.
  restartBroker: async () => {
    await services('do', 'kafka-cluster', 'kill_node', '1')
    await services('do', 'kafka-cluster', 'start_node', '1')
  },
  // Every partition has three replicas on the same few cores.
  deadline: '240s',
})
