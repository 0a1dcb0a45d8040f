import { exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/index.ts'
import { adversary } from './adversary.suite.ts'
import { delays } from './delay.suite.ts'
import { headersOnTheWire } from './headers.suite.ts'
import { recovery } from './recovery.suite.ts'
import { confirmingReplays } from './replayed.suite.ts'
import { amqpUrls, managementOf, services } from './services.ts'
import { sinks } from './sink.suite.ts'
import { deadLetterSource } from './source.suite.ts'
import { rabbitmqWorld } from './world.ts'

const urls = await amqpUrls('rabbitmq')
const management = await managementOf('rabbitmq')
const url = urls[0] as string

// One file for everything that needs the broker: the contract restarts it, and files run at the same time.
headersOnTheWire(url)
delays(url, management)
recovery(url, management)
deadLetterSource(url)
confirmingReplays(url)
sinks(url)
adversary(url)

exerciseTransport({
  runner: { describe, it },
  name: 'rabbitmq, one node',
  capabilities: CAPABILITIES,
  open: () => rabbitmqWorld(urls),
  restartBroker: async () => {
    await services('do', 'rabbitmq', 'ctl', 'stop_app')
    await services('do', 'rabbitmq', 'ctl', 'start_app')
  },
  deadline: '60s',
})
