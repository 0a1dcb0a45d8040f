import { services, urlsOf } from '@redrive/dev-support'
import { exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/index.ts'
import { kafkaWorld } from './world.ts'

const brokers = await urlsOf('kafka-cluster')

exerciseTransport({
  runner: { describe, it },
  name: 'kafka, three brokers',
  capabilities: CAPABILITIES,
  // With all of them at once, an answer may take longer than anybody would wait for it.
  open: () => kafkaWorld(brokers, { confirmTimeout: '60s' }),
  // One of them dies, and comes back; the others lead what it led.
  restartBroker: async () => {
    await services('do', 'kafka-cluster', 'kill_node', '1')
    await services('do', 'kafka-cluster', 'start_node', '1')
  },
  // Every partition has three replicas on the same few cores.
  deadline: '240s',
})
