import { ManagedConnection } from './connection.ts'
import { declareForConsumer, declareForSource, existing, managerOf } from './declare.ts'
import { type NatsOptions, resolveOptions } from './options.ts'
import {
  consumerOf,
  DRAIN_LEASE_MS,
  retryConsumerOf,
  streamsOf,
  workerOf,
  workQueueOf,
} from './specs.ts'

/** The options of `nats()` that name streams and consumers. */
export type ApplyTopologyOptions = Pick<
  NatsOptions,
  'servers' | 'stream' | 'consumer' | 'subjects' | 'prefix' | 'replicas' | 'connect'
>

/** A stream or a consumer, and the request to the server that creates it. */
export interface PlannedPart {
  readonly kind: 'stream' | 'consumer'
  readonly stream: string
  /** Undefined for a stream. */
  readonly consumer: string | undefined
  readonly subject: string
  readonly body: object
}

export interface AppliedPart extends Pick<PlannedPart, 'kind' | 'stream' | 'consumer'> {
  /** It did not exist before. */
  readonly isNew: boolean
}

/** Returns everything that a consumer and its control plane need, without connecting. Without `replicas`, streams have one copy. */
export function planTopology(
  options: Omit<ApplyTopologyOptions, 'servers' | 'connect'>,
): readonly PlannedPart[] {
  const resolved = resolveOptions({ servers: 'nats://localhost', ...options })
  const { topology, subjects, replicas = 1 } = resolved
  const { stream, retry, dead } = topology
  const own = streamsOf(topology, replicas)
  const letters = [dead.deadLetters, dead.quarantine, ...dead.advisories]
  const streams = [
    ...(subjects === undefined
      ? []
      : [{ num_replicas: replicas, ...workQueueOf(stream, subjects) }]),
    own.retry,
    own.deadLetters,
  ]
  const consumers = [
    { stream, config: consumerOf(resolved) },
    { stream: retry.stream, config: retryConsumerOf(resolved) },
    { stream: dead.stream, config: workerOf(dead.deadConsumer, letters, DRAIN_LEASE_MS) },
    {
      stream: dead.stream,
      config: workerOf(dead.confirmationConsumer, [dead.confirmations], DRAIN_LEASE_MS),
    },
  ]
  return [
    ...streams.map(
      (config): PlannedPart => ({
        kind: 'stream',
        stream: config.name,
        consumer: undefined,
        subject: `$JS.API.STREAM.CREATE.${config.name}`,
        body: config,
      }),
    ),
    ...consumers.map(
      ({ stream: of, config }): PlannedPart => ({
        kind: 'consumer',
        stream: of,
        consumer: config.durable_name,
        subject: `$JS.API.CONSUMER.DURABLE.CREATE.${of}.${config.durable_name}`,
        body: { stream_name: of, config },
      }),
    ),
  ]
}

/**
 * Creates everything that a consumer and its control plane need, for a deployment where applications create nothing.
 * What exists is checked, and not changed.
 */
export async function applyTopology(
  options: ApplyTopologyOptions,
): Promise<readonly AppliedPart[]> {
  const resolved = resolveOptions(options)
  const { servers: _, connect: __, ...named } = options
  const managed = new ManagedConnection(resolved.connect)
  try {
    const connection = await managed.open()
    const { streams, consumers } = await managerOf(connection)
    const parts = await Promise.all(
      planTopology(named).map(async ({ kind, stream, consumer }): Promise<AppliedPart> => {
        const found =
          consumer === undefined
            ? await existing(streams.info(stream))
            : await existing(consumers.info(stream, consumer))
        return { kind, stream, consumer, isNew: found === undefined }
      }),
    )
    await declareForConsumer(connection, resolved)
    await declareForSource(connection, resolved)
    return parts
  } finally {
    await managed.close()
  }
}
