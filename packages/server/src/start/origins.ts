import { RedriveError } from '@redrive/core'
import type { DeadLetterSource } from '@redrive/runtime'
import { type BrokerKind, kindOf, type SourceConfig } from '../config/source.ts'

/** The default name of a PostgreSQL store. */
export const DEFAULT_STORE = 'default'

/** The queue, topic or store of a source, by its broker. */
const ORIGIN: {
  readonly [Kind in BrokerKind]: (config: NonNullable<SourceConfig[Kind]>) => string
} = {
  rabbitmq: ({ queue }) => queue,
  kafka: ({ topic }) => topic,
  nats: ({ stream }) => stream,
  postgres: ({ queue }) => queue,
  redis: ({ stream }) => stream,
  bullmq: ({ queue }) => queue,
  sqs: ({ queue }) => queue.slice(queue.lastIndexOf('/') + 1),
  fileStore: ({ directory }) => directory,
  redisStore: ({ prefix }) => prefix,
  postgresStore: ({ name }) => name ?? DEFAULT_STORE,
}

/** Returns the allowed replay destinations of a source: its queue or topic, and `replay.allowedOrigins`. */
export const originsOf = (config: SourceConfig): readonly string[] => [
  originOf(kindOf(config), config),
  ...(config.replay?.allowedOrigins ?? []),
]

const originOf = <Kind extends BrokerKind>(kind: Kind, config: SourceConfig): string =>
  ORIGIN[kind](config[kind] as NonNullable<SourceConfig[Kind]>)

/**
 * Wraps a source so that it replays only to the allowed destinations. The origin of a dead letter comes from
 * its headers, which the sender can forge. Without this check, a sender to one queue could write to every queue.
 */
export function boundTo(
  source: DeadLetterSource,
  name: string,
  origins: readonly string[],
): DeadLetterSource {
  const allowed = new Set(origins)
  const lag = source.lag?.bind(source)
  const queues = source.queues?.bind(source)
  const putBack = source.putBack?.bind(source)
  return {
    source: source.source,
    replay: source.replay,
    drain: (options) => source.drain(options),
    confirmations: (options) => source.confirmations(options),
    depth: () => source.depth(),
    ...(lag === undefined ? {} : { lag }),
    ...(queues === undefined ? {} : { queues }),
    ...(putBack === undefined ? {} : { putBack }),
    close: () => source.close(),
    async publish(replay) {
      const { origin } = replay.deadLetter
      if (!allowed.has(origin)) throw originNotAllowed(name, origin)
      await source.publish(replay)
    },
  }
}

const originNotAllowed = (name: string, origin: string) =>
  new RedriveError(
    'REFUSED',
    `The origin "${origin}" of this dead letter is not a replay destination of source "${name}". Discard it, or add the origin to sources.${name}.replay.allowedOrigins.`,
  )
