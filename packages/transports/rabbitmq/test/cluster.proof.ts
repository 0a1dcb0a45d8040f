import { exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/index.ts'
import { amqpUrls, services } from './services.ts'
import { rabbitmqWorld } from './world.ts'

const urls = await amqpUrls('rabbitmq-cluster')

exerciseTransport({
  runner: { describe, it },
  name: 'rabbitmq, three nodes',
  capabilities: CAPABILITIES,
  open: () => rabbitmqWorld(urls),
  // The node that everyone is connected to dies, and comes back.
  restartBroker: async () => {
    await services('do', 'rabbitmq-cluster', 'kill_node', '1')
    await services('do', 'rabbitmq-cluster', 'start_node', '1')
  },
  // Every queue has three members on the same few cores.
  deadline: '120s',
})
