/** A consumer with metrics. Each message names how its handler ends, until the harness repairs it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { business, type PolicyOptions } from '@redrive/core'
import { kafka } from '@redrive/kafka'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume, type Transport } from '@redrive/runtime'
import { prometheus } from '@redrive/telemetry'
import { Client } from 'pg'
import { type Message, ready } from '../harness/process.ts'

/** How the handler ends. A `query` uses the database; a `hang` waits until it is `repaired`. */
export type Kind = 'good' | 'crash' | 'declined' | 'confusing' | 'query' | 'hang'

export interface AlertConsumerOptions {
  readonly rabbitmq?: { readonly url: string; readonly queue: string }
  readonly kafka?: {
    readonly brokers: readonly string[]
    readonly topic: string
    readonly group: string
  }
  /** Port of `/metrics`. It listens when the harness sends `expose`. */
  readonly metricsPort: number
  /** The database of the kind `query`. */
  readonly databaseUrl?: string
  /** Time after which a query fails, in ms. Default 1 s. */
  readonly queryMs?: number
  readonly policy?: Omit<PolicyOptions, 'classify'>
}

/** Reported when the number of assigned partitions changes. */
export interface AssignedMessage extends Message {
  readonly kind: 'assigned'
  readonly partitions: number
}

class CardDeclined extends Error {
  override readonly name = 'CardDeclined'
}

const options = JSON.parse(process.argv[2] ?? '') as AlertConsumerOptions
const metrics = prometheus()
const repaired = new AbortController()

const HANDLERS: Readonly<Record<Kind, () => unknown>> = {
  good: () => undefined,
  crash: () => process.kill(process.pid, 'SIGKILL'),
  declined: () => {
    if (!repaired.signal.aborted) throw new CardDeclined('the card was declined')
  },
  confusing: () => {
    if (!repaired.signal.aborted) throw new Error('something is wrong with this order')
  },
  query,
  hang: () => repaired.signal.aborted || once(repaired.signal, 'abort'),
}

async function query(): Promise<void> {
  const { databaseUrl = '', queryMs = 1_000 } = options
  const client = new Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: queryMs,
    query_timeout: queryMs,
  })
  // The connection can also break after the query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
  } finally {
    void client.end().catch(() => undefined)
  }
}

async function expose(): Promise<void> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', metrics.contentType).end(metrics.text())
  })
  await once(server.listen(options.metricsPort, '127.0.0.1'), 'listening')
}

const transport: Transport =
  options.kafka === undefined
    ? rabbitmq(options.rabbitmq ?? { url: '', queue: '' })
    : kafka(options.kafka)
const consumer = await consume<{ readonly kind: Kind }>(
  transport,
  // A replay begins the second cycle.
  ({ body }, { cycle }) => HANDLERS[cycle > 1 ? 'hang' : body.kind](),
  { name: 'billing', logger: 'off', classify: [business(CardDeclined)], ...options.policy },
)

let assigned = -1
setInterval(() => {
  const now = consumer.health().assigned ?? 0
  if (now === assigned) return
  assigned = now
  process.send?.({ kind: 'assigned', partitions: now } satisfies AssignedMessage)
}, 100).unref()

ready((request) => {
  if (request === 'expose') void expose()
  else if (request === 'repair') repaired.abort()
})
