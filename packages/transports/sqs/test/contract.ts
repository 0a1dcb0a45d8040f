import { services, urlOf } from '@redrive/dev-support'
import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { afterAll, describe, it } from 'vitest'
import { capabilitiesOf } from '../src/capabilities.ts'
import { clientOf, sqsWorld } from './world.ts'

interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip'> {
  /** Another server for scenarios that disturb other tests. */
  readonly service?: 'elasticmq' | 'elasticmq-restarts'
  readonly isFifo?: boolean
}

/** The contract on one kind of queue. Scenarios that take long or disturb other tests are in separate files. */
export async function contractOf({
  service = 'elasticmq',
  isFifo = false,
  ...scenarios
}: ContractOptions): Promise<void> {
  const client = clientOf(await urlOf(service))
  afterAll(() => client.destroy())
  exerciseTransport({
    ...scenarios,
    runner: { describe, it },
    isConcurrent: true,
    name: isFifo ? 'sqs, FIFO queue' : 'sqs, standard queue',
    capabilities: capabilitiesOf(isFifo),
    open: () => sqsWorld(client, { isFifo }),
    restartBroker: async () => void (await services('do', service, 'crash')),
    deadline: '60s',
  })
}
