import { services, urlOf } from '@redrive/dev-support'
import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { RetentionPolicy } from '@nats-io/jetstream'
import { afterAll, describe, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'
import { natsWorld, siteAt } from './world.ts'

interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip'> {
  /** Another server for scenarios that disturb other tests. */
  readonly service?: 'nats' | 'nats-restarts'
  /** How the stream of the producers keeps messages. */
  readonly retention?: RetentionPolicy
}

/** The contract on one server. Scenarios that take long or disturb other tests are in separate files. */
export async function contractOf({
  service = 'nats',
  retention = RetentionPolicy.Limits,
  ...scenarios
}: ContractOptions): Promise<void> {
  const site = await siteAt(await urlOf(service))
  afterAll(() => site.connection.close())
  exerciseTransport({
    ...scenarios,
    runner: { describe, it },
    isConcurrent: true,
    name: `nats, one server, retention ${retention}`,
    capabilities: CAPABILITIES,
    open: () => natsWorld(site, retention),
    restartBroker: async () => void (await services('do', service, 'crash')),
    deadline: '60s',
  })
}
