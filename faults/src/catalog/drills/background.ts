/** The background work of the catalog in a process of its own, on one source. */
import { catalog, startBackground } from '@redrive/catalog'
import { kafkaSource } from '@redrive/kafka'
import { rabbitmqSource } from '@redrive/rabbitmq'
import type { DeadLetterSource } from '@redrive/runtime'
import { openDatabase } from '../../effects.ts'
import { brokerOf } from '../brokers/broker.ts'
import type { Where } from '../options.ts'
import { ready } from './process.ts'

export interface BackgroundProgram extends Where {
  /** Where somebody else puts dead letters. Default: where our consumers do. */
  readonly deadLetters?: string
  /** Asked before each turn of a replay. Default: nobody is. */
  readonly healthUrl?: string
  /** Most dead letters in one transaction. */
  readonly batch?: number
  /** It dies when so many batches are committed, before the broker lets go of the last. */
  readonly diesAtRelease?: number
}

const options = JSON.parse(process.argv[2] ?? '') as BackgroundProgram
const { kind, queue, deadLetters, healthUrl, batch, diesAtRelease } = options
/** 12 for the background work, and some for a source in the same database. */
const CONNECTIONS = 16
const pool = openDatabase(options.catalogUrl, { connections: CONNECTIONS })

async function openSource(): Promise<DeadLetterSource> {
  if (deadLetters === undefined) return (await brokerOf(kind)).source(options, pool)
  return kind === 'kafka'
    ? kafkaSource({
        brokers: [options.kafkaBroker],
        topic: queue,
        group: `of-${queue}`,
        deadLetterTopics: [deadLetters],
      })
    : rabbitmqSource({ url: options.amqpUrl, queue, deadLetterQueues: [deadLetters] })
}

/** A release follows its commit at once: whoever dies there has stored what the broker still holds. */
function dying(source: DeadLetterSource): DeadLetterSource {
  const drain = source.drain.bind(source)
  let released = 0
  source.drain = async (most) => {
    const drained = await drain(most)
    const release = async () => {
      if (drained.deadLetters.length > 0) released += 1
      if (released === diesAtRelease) process.kill(process.pid, 'SIGKILL')
      await drained.release()
    }
    return { ...drained, release }
  }
  return source
}

async function health({ signal }: { readonly signal: AbortSignal }): Promise<void> {
  const { status } = await fetch(healthUrl ?? '', { signal })
  if (status !== 200) throw new Error(`the downstream answers ${status}`)
}

await startBackground({
  catalog: catalog({ pool }),
  pool,
  sources: [
    {
      source: dying(await openSource()),
      ...(healthUrl === undefined ? {} : { health }),
      ...(batch === undefined ? {} : { ingest: { batch } }),
    },
  ],
})
ready()
