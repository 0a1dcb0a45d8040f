/** Follows one message through a retry, a dead letter and a replay of the server, in the traces that an OpenTelemetry Collector gets. */
import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { business, exponential } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { services, startConfigured } from '@redrive/dev-support'
import { type Consumer, consume } from '@redrive/runtime'
import { openTelemetry } from '@redrive/telemetry/opentelemetry'
import { memoryInbox, until } from '@redrive/testing'
import { connect } from 'amqplib'
import { beforeAll, expect, test } from 'vitest'
import { attributesOf, linksOf, type OtlpSpan, receiveSpans } from './otlp-receiver.ts'
import { rabbitmqUrl, type ServerProcess, serveDatabase, serving } from './serve-stage.ts'

const QUEUE = 'traced-orders'
const MESSAGE = 'order-7'
/** The trace in which the producer sent the message. */
const PRODUCER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
/** Kind and status code of a span, as numbers of OTLP. */
const CONSUMER = 5
const ERROR = 2

class CardDeclined extends Error {
  override readonly name = 'CardDeclined'
}

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

/** The collector decodes the spans that it receives, and sends them on as JSON. */
const collectorConfig = (to: string) => (port: number) =>
  `
receivers: { otlp: { protocols: { http: { endpoint: '127.0.0.1:${port}' } } } }
exporters: { otlphttp: { endpoint: '${to}', encoding: json, compression: none } }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { traces: { receivers: [otlp], exporters: [otlphttp] } }
`

let spans: readonly OtlpSpan[] = []
let replayId: string | undefined

beforeAll(async () => {
  const url = await rabbitmqUrl()
  const { base } = await serveDatabase('redrive_server_traces')
  const receiver = await receiveSpans()
  await services('up', 'collector')
  const collector = await startConfigured(
    await services('do', 'collector', 'path'),
    collectorConfig(receiver.url),
    (path) => ['--config', path],
  )
  const traces = `http://127.0.0.1:${collector.port}/v1/traces`
  await until('the collector responds', () => fetch(traces).then(() => true))
  const exporter = new OTLPTraceExporter({ url: traces })
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  const end = openTelemetry({ tracer: provider.getTracer('shop') })
  const shop = { isFixed: false }
  const consumer = await startConsumer(url, shop)
  const server = await serving({
    ...base,
    sources: { [QUEUE]: { rabbitmq: { url, queue: QUEUE } } },
  })
  try {
    await send(url)
    await deadLettered(server)
    shop.isFixed = true
    await replayed(server)
    await provider.forceFlush()
    spans = await until('the span of the replay', () => receiver.spans(), {
      accept: (all) => all.some((span) => attributesOf(span)['redrive.cycle'] === 2),
    })
  } finally {
    end()
    await consumer.stop({ drain: 0 })
    await server.kill()
    await provider.shutdown()
    await collector.stop()
    receiver.close()
    await removeQueues(url)
  }
}, 1_800_000)

const named = (name: string) => spans.filter((span) => span.name === `${name} ${QUEUE}`)

test('each run begins a trace and links to the producer and the run before', () => {
  const runs = named('process')
  expect(runs.map(({ kind, status }) => [kind, status?.code ?? 0])).toEqual([
    [CONSUMER, ERROR],
    [CONSUMER, ERROR],
    [CONSUMER, 0],
  ])
  expect(new Set(runs.map(({ traceId }) => traceId)).size).toBe(3)
  expect(runs.map(({ parentSpanId }) => parentSpanId ?? '')).toEqual(['', '', ''])
  const [first, second] = runs
  const creation = { kind: 'creation', ...PRODUCER }
  const to = (kind: string, { traceId = '', spanId = '' }: Partial<OtlpSpan> = {}) => ({
    kind,
    traceId,
    spanId,
  })
  expect(runs.map(linksOf)).toEqual([
    [creation],
    [creation, to('previous_run', first)],
    [creation, to('previous_cycle', second)],
  ])
})

test('the runs have the attributes of the semantic conventions, and those of Redrive', () => {
  const common = {
    'messaging.system': 'rabbitmq',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': QUEUE,
    'messaging.message.id': MESSAGE,
    'redrive.handler': 'billing',
  }
  expect(named('process').map(attributesOf)).toMatchObject([
    { ...common, 'redrive.cycle': 1, 'redrive.attempt': 1, 'error.type': 'Error' },
    { ...common, 'redrive.cycle': 1, 'error.type': 'CardDeclined' },
    { ...common, 'redrive.cycle': 2, 'redrive.attempt': 1, 'redrive.replay_id': replayId },
  ])
})

test('the retry and the dead letter are children of the runs that failed', () => {
  const [first, second] = named('process')
  const [retry, deadLetter] = [named('retry')[0], named('dead_letter')[0]]
  expect([retry?.traceId, retry?.parentSpanId]).toEqual([first?.traceId, first?.spanId])
  expect([deadLetter?.traceId, deadLetter?.parentSpanId]).toEqual([second?.traceId, second?.spanId])
  expect(attributesOf(retry)).toMatchObject({ 'redrive.class': 'transient', 'redrive.runs': 1 })
  expect(attributesOf(deadLetter)).toMatchObject({
    'messaging.destination.name': `${QUEUE}.dlq`,
    'redrive.class': 'business',
    'redrive.reason': 'terminal',
    'redrive.runs': 2,
  })
})

const startConsumer = (url: string, shop: { readonly isFixed: boolean }): Promise<Consumer> =>
  consume(
    rabbitmq({ url, queue: QUEUE }),
    (_, { runs }) => {
      if (shop.isFixed) return
      if (runs > 0) throw new CardDeclined('the card was declined')
      throw Object.assign(new Error('connect ECONNREFUSED payments:443'), { code: 'ECONNREFUSED' })
    },
    {
      name: 'billing',
      inbox: memoryInbox(),
      logger: 'off',
      classify: [business(CardDeclined)],
      // Through the broker, as in a real outage.
      retry: { maxInlineDelay: 0, backoff: exponential({ base: '100ms', cap: '200ms' }) },
    },
  )

async function send(url: string): Promise<void> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  const traceparent = `00-${PRODUCER.traceId}-${PRODUCER.spanId}-01`
  channel.sendToQueue(QUEUE, Buffer.from('{}'), { messageId: MESSAGE, headers: { traceparent } })
  await channel.waitForConfirms()
  await connection.close()
}

interface Groups {
  readonly groups: readonly { readonly id: string }[]
}
interface Run {
  readonly id: string
  readonly hash: string
  readonly state: string
}
interface Items {
  readonly items: readonly { readonly replayId?: string }[]
}

const deadLettered = (server: ServerProcess) =>
  until('the dead letter', () => server.json<Groups>('/api/v1/groups'), {
    accept: ({ groups }) => groups.length > 0,
  })

/** Replays the dead letter and waits for its confirmation. */
async function replayed(server: ServerProcess): Promise<void> {
  const { groups } = await server.json<Groups>('/api/v1/groups')
  const body = { selection: { group: groups[0]?.id } }
  const { id, hash } = await server.json<Run>('/api/v1/replays', body)
  await server.json<Run>(`/api/v1/replays/${id}/approve`, { hash })
  await until('the end of the replay', () => server.json<Run>(`/api/v1/replays/${id}`), {
    accept: ({ state }) => state === 'done',
    timeout: '1m',
  })
  const { items } = await server.json<Items>(`/api/v1/replays/${id}/items`)
  replayId = items[0]?.replayId
}

async function removeQueues(url: string): Promise<void> {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  for (const queue of [QUEUE, `${QUEUE}.dlq`]) await channel.deleteQueue(queue)
  await connection.close()
}
