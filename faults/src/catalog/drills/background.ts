/** Runs the background work of the catalog in a separate process, for one source. */
import { catalog, startBackground } from '@redrive/catalog'
import { kafkaSource } from '@redrive/kafka'
import { rabbitmqSource } from '@redrive/rabbitmq'
import type { DeadLetterSource } from '@redrive/runtime'
import { openDatabase } from '../../harness/effects.ts'
import { brokerOf } from '../brokers/broker.ts'
import type { Where } from '../options.ts'
import { ready } from '../../harness/process.ts'

export interface BackgroundProgram extends Where {
  /**
   * Queue or topic where another application puts dead letters. Default: that of the Redrive
   * consumers.
   */
  readonly deadLetters?: string
  /** Health URL called before each turn of a replay. Default: no health check. */
  readonly healthUrl?: string
  /** Maximum number of dead letters in one transaction. */
  readonly batch?: number
  /** Maximum size of the body of a dead letter. Default: that of the ingest. */
  readonly maxPayloadBytes?: number
  /** The process dies after this number of committed batches, before it releases the last one. */
  readonly diesAtRelease?: number
}

const options = JSON.parse(process.argv[2] ?? '') as BackgroundProgram
const { kind, queue, deadLetters, healthUrl, batch, maxPayloadBytes, diesAtRelease } = options
/** 12 connections for the background work, plus some for a source in the same database. */
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

/**
 * Kills the process at a release. A release directly follows its commit, so the batch is stored and
 * the broker still has it.
 */
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
  if (status !== 200) throw new Error(`the downstream returned ${status}`)
}

await startBackground({
  catalog: catalog({ pool }),
  pool,
  sources: [
    {
      source: dying(await openSource()),
      ...(healthUrl === undefined ? {} : { health }),
      ingest: {
        ...(batch === undefined ? {} : { batch }),
        ...(maxPayloadBytes === undefined ? {} : { maxPayloadBytes }),
      },
    },
  ],
})
ready()
