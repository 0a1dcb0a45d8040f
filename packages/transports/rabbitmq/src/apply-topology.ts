import { readOptions } from '@redrive/core/internal'
import { ManagedConnection } from './connection/connection.ts'
import { declare, type DeclaredPart } from './declare.ts'
import { type RabbitMqOptions, readTransportOptions } from './options.ts'
import { topologyOf } from './topology.ts'

/** The options of `rabbitmq()` that name queues. */
export type ApplyTopologyOptions = Pick<
  RabbitMqOptions,
  'url' | 'queue' | 'topology' | 'prefix' | 'queueType' | 'order' | 'connect'
>

/**
 * Creates every queue that a consumer of this queue may need, for a deployment where applications do not declare
 * queues. Calling it again changes nothing. If the broker refuses a queue that exists, nothing is created.
 */
export async function applyTopology(
  options: ApplyTopologyOptions,
): Promise<readonly DeclaredPart[]> {
  const { urls, queue, queueType, prefix, order, topology, connect, confirmTimeoutMs } =
    readOptions('applyTopology()', options, readTransportOptions)
  const connection = new ManagedConnection({
    urls,
    connect: (url) => connect(url, 'consume'),
    prepare: (model) => model.createChannel(),
    onLost: () => undefined,
  })
  try {
    await connection.open()
    const { connection: model } = await connection.whenReady(confirmTimeoutMs)
    const mode = topology === 'adopt' ? 'adopt' : 'declare'
    return await declare(model, topologyOf(queue, queueType, prefix, order), mode, 'all')
  } finally {
    await connection.close()
  }
}
