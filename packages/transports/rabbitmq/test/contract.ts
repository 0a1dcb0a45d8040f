import { services, urlsOf } from '@redrive/dev-support'
import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { capabilitiesOf } from '../src/capabilities.ts'
import { rabbitmqWorld } from './world.ts'

export interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip'> {
  /** Another server for scenarios that disturb other tests. */
  readonly service?: 'rabbitmq' | 'rabbitmq-restarts'
  readonly order?: 'none' | 'lane'
}

/** The contract on one node. Scenarios that take long or disturb other tests are in separate files. */
export async function contractOf({
  service = 'rabbitmq',
  order = 'none',
  ...scenarios
}: ContractOptions): Promise<void> {
  const urls = await urlsOf(service, 'amqp')
  exerciseTransport({
    ...scenarios,
    runner: { describe, it },
    isConcurrent: true,
    name: `rabbitmq, one node${order === 'lane' ? ', in lane order' : ''}`,
    capabilities: capabilitiesOf('quorum', order),
    open: () => rabbitmqWorld(urls, order),
    restartBroker: async () => {
      await services('do', service, 'ctl', 'stop_app')
      await services('do', service, 'ctl', 'start_app')
    },
    deadline: '60s',
  })
}
