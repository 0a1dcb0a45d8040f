import { Admin } from '@platformatic/kafka'
import { encodeHeaders } from '@redrive/core'
import { urlOf } from '@redrive/dev-support'
import {
  deadLetterTopic,
  kafka,
  kafkaSink,
  kafkaSource,
  topologyOf as topicsOf,
} from '@redrive/kafka'
import { postgres, postgresSource } from '@redrive/postgres'
import {
  deadLetterQueue,
  rabbitmq,
  rabbitmqSink,
  rabbitmqSource,
  topologyOf as queuesOf,
} from '@redrive/rabbitmq'
import type { DeadLetterSource, OutboundEvent, Sink, Transport } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import type { Letter } from './causes.ts'

type Pool = Parameters<typeof postgres>[0]['pool']

/** One queue, topic or table with the tools that the proof needs. */
export interface Queue {
  /** The settings of the source in the config of the server. */
  readonly config: object
  readonly transport: Transport
  /** Counts the dead letters and the lag at the broker. The proof drains nothing with it. */
  readonly counts: DeadLetterSource
  /** Writes dead letters to the broker. The queue must have been declared by its consumer. */
  write(letters: readonly Letter[]): Promise<void>
  /** Deletes everything from the broker. */
  end(): Promise<void>
}

/** Writes dead letters in the format of the consumers of Redrive. */
async function send(sink: Sink, origin: string, letters: readonly Letter[]): Promise<void> {
  const events = letters.map(({ id, key, body, at, cycle, reason }): OutboundEvent => {
    const state = { id, key, source: origin, replayId: undefined, cycle, reason }
    return {
      ...{ id, key, at, type: 'triage', lane: undefined, contentType: 'application/json' },
      bytes: Buffer.from(body),
      headers: encodeHeaders(state).headers,
    }
  })
  const { signal } = new AbortController()
  for (let from = 0; from < events.length; from += sink.batch) {
    await sink.send(events.slice(from, from + sink.batch), { signal })
  }
  await sink.close?.()
}

export async function rabbitmqQueue(queue: string): Promise<Queue> {
  const url = await urlOf('rabbitmq', 'amqp')
  const counts = rabbitmqSource({ url, queue })
  return {
    config: { rabbitmq: { url, queue } },
    transport: rabbitmq({ url, queue }),
    counts,
    write: (letters) =>
      send(rabbitmqSink({ url, routingKey: deadLetterQueue(queue) }), queue, letters),
    async end() {
      await counts.close()
      const connection = await connect(url)
      const channel = await connection.createChannel()
      const { exchange, source, deadLetters, later } = queuesOf(queue, 'quorum')
      for (const { name } of [source, deadLetters, ...later]) await channel.deleteQueue(name)
      await channel.deleteExchange(exchange)
      await connection.close()
    },
  }
}

const PARTITIONS = 2

export async function kafkaQueue(topic: string): Promise<Queue> {
  const broker = await urlOf('kafka')
  const group = `${topic}-consumers`
  const admin = new Admin({ clientId: 'triage', bootstrapBrokers: [broker] })
  await admin.createTopics({ topics: [topic], partitions: PARTITIONS, replicas: 1 })
  await until('the topic exists', async () => (await admin.listTopics()).includes(topic))
  const at = { brokers: [broker], topic, group }
  const counts = kafkaSource(at)
  return {
    config: { kafka: { brokers: broker, topic, group } },
    transport: kafka(at),
    counts,
    write: (letters) =>
      send(kafkaSink({ brokers: [broker], topic: deadLetterTopic(topic, group) }), topic, letters),
    async end() {
      await counts.close()
      const { deadLetters, replayed, retries } = topicsOf(topic, group, 0)
      const known = new Set(await admin.listTopics())
      const all = [topic, ...[deadLetters, replayed, ...retries].map(({ name }) => name)]
      await admin.deleteTopics({ topics: all.filter((name) => known.has(name)) })
      await admin.close()
    },
  }
}

/** Adds rows as a consumer leaves them when it gives up. */
const ADD_FAILED = `
insert into redrive.outbox (queue, type, key, content_type, due_at, failed_at, first_failed_at, attempts, status,
    reason, last_error, cycle, payload)
  select $1, 'triage', l.key, 'application/json', null, to_timestamp(l.at / 1000.0), to_timestamp(l.at / 1000.0),
    5, 'failed', l.reason, l.cycle #>> '{history,0,message}', l.cycle, convert_to(l.body, 'UTF8')
  from jsonb_to_recordset($2::jsonb) as l (key text, at double precision, reason text, cycle jsonb, body text)`

/** 1,000 rows per statement. */
const ROWS = 1_000

/** The outbox is in the database of the server, which is replaced by the next proof. */
export function postgresQueue(queue: string, pool: Pool): Queue {
  return {
    config: { postgres: { queue } },
    transport: postgres({ pool, queue }),
    counts: postgresSource({ pool, queue }),
    async write(letters) {
      for (let from = 0; from < letters.length; from += ROWS) {
        const rows = letters.slice(from, from + ROWS)
        await pool.query(ADD_FAILED, [queue, JSON.stringify(rows)])
      }
    },
    end: () => Promise.resolve(),
  }
}
