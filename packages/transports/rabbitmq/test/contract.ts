import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'
import { services, urlsOf } from '@redrive/dev-support'
import { rabbitmqWorld } from './world.ts'

/** The contract on one node. Scenarios that disturb other tests on the broker are in separate files. */
export async function contractOf(
  service: 'rabbitmq' | 'rabbitmq-restarts',
  scenarios: Pick<ExerciseOptions, 'only' | 'skip'>,
): Promise<void> {
  const urls = await urlsOf(service, 'amqp')
  exerciseTransport({
    ...scenarios,
    runner: { describe, it },
    isConcurrent: true,
    name: 'rabbitmq, one node',
    capabilities: CAPABILITIES,
    open: () => rabbitmqWorld(urls),
    restartBroker: async () => {
      await services('do', service, 'ctl', 'stop_app')
      await services('do', service, 'ctl', 'start_app')
    },
    deadline: '60s',
  })
}
