import { RedriveError } from '@redrive/core'
import type { DeadLetterSource } from '@redrive/runtime'
import type { SourceConfig } from '../config/source.ts'

/** Where dead letters of a source may go back to: its queue or topic, and what the config names beside. */
export const originsOf = ({ rabbitmq, kafka, postgres, replay }: SourceConfig): readonly string[] =>
  [rabbitmq?.queue, kafka?.topic, postgres?.queue, ...(replay?.origins ?? [])].filter(
    (one) => one !== undefined,
  )

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
