import { RedriveError } from '@redrive/core'
import type { DeadLetterSource } from '@redrive/runtime'
import { type BrokerKind, kindOf, type SourceConfig } from '../config/source.ts'

/** The queue or topic of a source, by its broker. */
const ORIGIN: {
  readonly [Kind in BrokerKind]: (config: NonNullable<SourceConfig[Kind]>) => string
} = {
  rabbitmq: ({ queue }) => queue,
  kafka: ({ topic }) => topic,
  postgres: ({ queue }) => queue,
}

/** Returns where dead letters of a source may go back to: its queue or topic, and those that the config adds. */
export const originsOf = (said: SourceConfig): readonly string[] => [
  originOf(kindOf(said), said),
  ...(said.replay?.origins ?? []),
]

const originOf = <Kind extends BrokerKind>(kind: Kind, said: SourceConfig): string =>
  ORIGIN[kind](said[kind] as NonNullable<SourceConfig[Kind]>)

/**
 * The same source, which replays to where the config says and nowhere else, whatever was planned. Where a dead letter came from is
 * said by its own headers, which whoever sent it could write: without this, somebody who may write to one
 * queue would have us write to all others.
 */
export function boundTo(
  source: DeadLetterSource,
  name: string,
  origins: readonly string[],
): DeadLetterSource {
  const allowed = new Set(origins)
  const lag = source.lag?.bind(source)
  return {
    source: source.source,
    replay: source.replay,
    drain: (options) => source.drain(options),
    confirmations: (options) => source.confirmations(options),
    depth: () => source.depth(),
    ...(lag === undefined ? {} : { lag }),
    close: () => source.close(),
    async publish(replay) {
      const { origin } = replay.deadLetter
      if (!allowed.has(origin)) throw notThere(name, origin)
      await source.publish(replay)
    },
  }
}

const notThere = (name: string, origin: string) =>
  new RedriveError(
    'REFUSED',
    `It says that it came from '${origin}', where source ${name} does not replay to. Discard it, or name that in sources.${name}.replay.origins.`,
  )
