import { exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES, capabilitiesOf } from '../src/index.ts'
import { preparingTopics } from './declare.suite.ts'
import { headersOnTheWire } from './headers.suite.ts'
import { consumingWithKafkaJs } from './kafkajs.suite.ts'
import { sharingPartitions } from './membership.suite.ts'
import { publishingCopies } from './publish.suite.ts'
import { confirmingReplays } from './replayed.suite.ts'
import { drainingDeadLetters } from './source.suite.ts'
import { brokersOf, services } from './services.ts'
import { sinks } from './sink.suite.ts'
import { kafkaWorld } from './world.ts'

const brokers = await brokersOf('kafka')

// One file for everything that needs the broker: the contract restarts it, and files run at the same time.
exerciseTransport({
  runner: { describe, it },
  name: 'kafka, one broker',
  capabilities: CAPABILITIES,
  open: () => kafkaWorld(brokers),
  restartBroker: async () => {
    await services('do', 'kafka', 'crash')
  },
  deadline: '60s',
})

const STRESS = 'stress: the whole list, ten times in parallel'

exerciseTransport({
  runner: { describe, it },
  name: 'kafka, one broker, in lane order',
  capabilities: capabilitiesOf({ order: 'lane', isTransactional: false }),
  open: () => kafkaWorld(brokers, { order: 'lane' }),
  restartBroker: async () => {
    await services('do', 'kafka', 'crash')
  },
  skip: [{ scenario: STRESS, reason: 'a broker of this size is busy for a minute with it once' }],
  deadline: '60s',
})

exerciseTransport({
  runner: { describe, it },
  name: 'kafka, one broker, with transactions',
  capabilities: capabilitiesOf({ order: 'none', isTransactional: true }),
  open: () => kafkaWorld(brokers, { handOff: 'transactional' }),
  restartBroker: async () => {
    await services('do', 'kafka', 'crash')
  },
  skip: [{ scenario: STRESS, reason: 'a broker of this size is busy for a minute with it once' }],
  deadline: '60s',
})

headersOnTheWire(brokers)
publishingCopies(brokers)
preparingTopics(brokers)
sharingPartitions(brokers)
drainingDeadLetters(brokers)
confirmingReplays(brokers)
sinks(brokers)
consumingWithKafkaJs(brokers)
