import { exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/index.ts'
import { brokersOf, services } from './services.ts'
import { kafkaWorld } from './world.ts'

const brokers = await brokersOf('kafka-cluster')

exerciseTransport({
  runner: { describe, it },
  name: 'kafka, three brokers',
  capabilities: CAPABILITIES,
  open: () => kafkaWorld(brokers),
  // One of them dies, and comes back; the others lead what it led.
  restartBroker: async () => {
    await services('do', 'kafka-cluster', 'kill_node', '1')
    await services('do', 'kafka-cluster', 'start_node', '1')
  },
  // Every partition has three replicas on the same few cores.
  deadline: '240s',
})
