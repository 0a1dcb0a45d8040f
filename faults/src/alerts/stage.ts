import { join } from 'node:path'
import { mkdir, rm } from 'node:fs/promises'
import { rabbitmq, topologyOf } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { type ChannelModel, connect } from 'amqplib'
import { freePort } from '../harness/listening.ts'
import { ROOT, urlsOf } from '../harness/services.ts'
import { createDatabase } from '../postgres/database.ts'
import { type Replica, startReplica } from '../server/replica.ts'
import { type AlertLog, logAlerts } from './alert-log.ts'
import { startMonitoring } from './monitoring.ts'
import type { Addresses } from './place.ts'

/** Broker, server, Prometheus and Alertmanager, which all cases share. */
export interface Stage {
  readonly sources: readonly string[]
  /** The factor that shortens the times of the rules. */
  readonly factor: number
  readonly addresses: Addresses
  readonly server: Replica
  readonly alerts: AlertLog
  /** Port on which the consumer of a source shows its metrics. */
  portOf(source: string): number
  end(): Promise<void>
}

const FOLDER = join(ROOT, '.reports/faults/alerts')
/** 30 min: the default of `alerts.age`. */
const AGE_MS = 1_800_000

/** Starts everything for these sources. */
export async function startStage(sources: readonly string[], factor: number): Promise<Stage> {
  await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  const [postgresUrl = ''] = await urlsOf('postgres')
  const [amqpUrl = ''] = await urlsOf('rabbitmq')
  const brokers = (await urlsOf('kafka')).flatMap((line) => line.split(','))
  const databaseUrl = await createDatabase(postgresUrl, 'alerts')
  const connection = await connect(amqpUrl)
  const channel = await connection.createConfirmChannel()
  // Before the server starts: it reports missing queues for 15 s, which is long in the time of the drill.
  for (const queue of sources) await declare(amqpUrl, queue)
  const ports = new Map<string, number>()
  for (const source of sources) ports.set(source, await freePort())
  const portOf = (source: string) => ports.get(source) ?? 0
  const metrics = `127.0.0.1:${await freePort()}`
  const server = await startReplica({
    name: 'server',
    roles: 'api,ingest,replay,watch',
    folder: FOLDER,
    config: {
      database: { url: databaseUrl },
      auth: { development: { name: 'ada' } },
      approval: 'anyone',
      limits: { requestsPerMinute: 1_000_000 },
      migrate: true,
      metrics: { listen: metrics },
      alerts: { age: `${AGE_MS / factor}ms` },
      sources: Object.fromEntries(
        sources.map((queue) => [queue, { rabbitmq: { url: amqpUrl, queue } }]),
      ),
    },
  })
  const targets = Object.fromEntries(
    sources.map((source) => [source, `127.0.0.1:${portOf(source)}`]),
  )
  const monitoring = await startMonitoring({
    folder: FOLDER,
    targets: { ...targets, server: metrics },
    factor,
  })
  const alerts = logAlerts(monitoring.url)
  return {
    sources,
    factor,
    addresses: { amqpUrl, databaseUrl: postgresUrl, brokers, channel },
    server,
    alerts,
    portOf,
    async end() {
      await alerts.end()
      await monitoring.end()
      await server.kill()
      await remove(connection, sources)
    },
  }
}

/** Declares the queues as a consumer does. */
async function declare(url: string, queue: string): Promise<void> {
  const consumer = await consume(rabbitmq({ url, queue }), () => undefined, { logger: 'off' })
  await consumer.stop({ drain: 0 })
}

async function remove(connection: ChannelModel, sources: readonly string[]): Promise<void> {
  const channel = await connection.createChannel()
  for (const source of sources) {
    const { deadLetters, later, exchange, source: queue } = topologyOf(source, 'quorum')
    for (const { name } of [queue, deadLetters, ...later]) await channel.deleteQueue(name)
    await channel.deleteExchange(exchange)
  }
  await connection.close()
}
