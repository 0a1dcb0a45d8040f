import { z } from 'zod'
import { thresholds } from './alerts.ts'
import {
  bullmq,
  fileStore,
  kafka,
  nats,
  POSTGRES,
  outboxSchema,
  postgres,
  postgresStore,
  rabbitmq,
  redis,
  redisStore,
  sqs,
} from './brokers.ts'
import { clientTls } from './tls.ts'
import { duration, flag, list, secretUrl, text, whole } from './values.ts'

const replay = z.strictObject({
  health: secretUrl(['http:', 'https:'])
    .describe(
      'Health URL of the consumers. It must return 2xx within 2 s; otherwise replay runs pause. Default: no check',
    )
    .optional(),
  maxLag: whole(0, 1_000_000_000)
    .describe('A replay run pauses when the consumer lag is higher. Default: no check')
    .optional(),
  inbox: z
    .strictObject({
      url: secretUrl(POSTGRES)
        .describe('URL of the database with the inbox. Default: the database of the server')
        .optional(),
      tls: clientTls
        .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
        .optional(),
      consumer: text(255).describe('Name of the consumer in its inbox'),
      schema: outboxSchema,
    })
    .describe(
      'Inbox of the consumers. It confirms replays that were not confirmed in time. Default: none',
    )
    .optional(),
  proof: z
    .enum(['confirmations', 'returns'])
    .describe(
      "What shows the outcome of a replay. 'returns': the consumers do not use Redrive and confirm nothing. Default: chosen for each plan, by earlier confirmations and the selected dead letters",
    )
    .optional(),
  allowedOrigins: list('queues or topics')
    .describe(
      'Additional queues or topics that replays may be published to. Default: none, because a sender can forge the origin in the headers',
    )
    .optional(),
})

/** A JSON Pointer. Ingest would reject an invalid one after the start, and then ingest nothing. */
const pointer = () =>
  text().refine((value) => value.startsWith('/'), {
    error: "expected a JSON Pointer such as '/card/number'",
  })

const hasValidNames = (pointers: Readonly<Record<string, string>>) => {
  const names = Object.keys(pointers)
  return names.length <= 8 && names.every((name) => name.length >= 1 && name.length <= 64)
}

/** Stores of sinks. No consumer confirms replays of their events. */
export const STORES = ['fileStore', 'redisStore', 'postgresStore'] as const

/** The kinds of broker. After you add one, the compiler lists the tables that need a new row. */
export const BROKERS = [
  'rabbitmq',
  'kafka',
  'nats',
  'postgres',
  'redis',
  'bullmq',
  'sqs',
  ...STORES,
] as const

export type BrokerKind = (typeof BROKERS)[number]

export const source = z
  .strictObject({
    rabbitmq: rabbitmq.describe('Source on RabbitMQ. A source has exactly one broker').optional(),
    kafka: kafka.describe('Source on Kafka').optional(),
    nats: nats.describe('Source on a stream of NATS JetStream').optional(),
    postgres: postgres.describe('Source on a PostgreSQL outbox').optional(),
    redis: redis.describe('Source on a stream of Redis').optional(),
    bullmq: bullmq.describe('Failed jobs of a queue of BullMQ').optional(),
    sqs: sqs.describe('Source on a queue of Amazon SQS').optional(),
    fileStore: fileStore.describe('Dead letters of sinks in a file store').optional(),
    redisStore: redisStore.describe('Dead letters of sinks in a Redis store').optional(),
    postgresStore: postgresStore.describe('Dead letters of sinks in a PostgreSQL store').optional(),
    handler: text(255)
      .describe('Name of the handler of the messages, for display and filters. Default: none')
      .optional(),
    retention: duration('1h', '3650d')
      .describe(
        "How long a dead letter that needs no decision is kept after its ingest or its last change of status ('1h'–'3650d'). Default: `retention.settled`",
      )
      .optional(),
    openRetention: duration('1h', '3650d')
      .describe(
        "The same for open dead letters, and for those with a replay in progress or an unknown outcome ('1h'–'3650d'). Default: `retention.open`",
      )
      .optional(),
    alerts: z
      .strictObject(thresholds)
      .describe('Thresholds of alerts of this source. Default: those of `alerts`')
      .optional(),
    batch: whole(1, 5_000)
      .describe('Maximum number of dead letters in one transaction (1–5,000, default 500)')
      .optional(),
    maxPayloadBytes: whole(1, 536_870_912)
      .describe(
        'Messages with larger bodies are set aside whole: stored, but not grouped and searched. Default 128 MiB',
      )
      .optional(),
    maxBytesInFlight: whole(1_048_576, 4_294_967_296)
      .describe(
        'Maximum bytes of the bodies that the ingest of this source holds in memory at the same time. A larger body is read alone. Default 64 MiB',
      )
      .optional(),
    mask: z
      .array(
        z.union(
          [
            pointer(),
            z.strictObject({
              pointer: pointer().describe('JSON Pointer of the value; `*` matches any key'),
              optional: flag()
                .describe('Show bodies without the value. Default false: they are hidden')
                .optional(),
            }),
          ],
          {
            error:
              "expected a JSON Pointer such as '/card/number', or an object with pointer and optional",
          },
        ),
      )
      .describe(
        'JSON Pointers of values that are visible only with permission "view_unmasked"; `*` matches any key. A body in which one finds nothing is hidden, unless it is `{ pointer, optional: true }`. Default: none',
      )
      .optional(),
    maskHeaders: z
      .array(text())
      .describe(
        'Names of headers that are visible only with permission "view_unmasked", in addition to well-known ones such as Authorization. Default: none',
      )
      .optional(),
    preview: flag()
      .describe(
        'Keep a masked, unencrypted copy of each payload. Default: true, or false when keys are set',
      )
      .optional(),
    extract: z
      .record(z.string(), pointer())
      .refine(hasValidNames, { error: 'expected at most 8 names of 1 to 64 characters' })
      .describe(
        "Values to search dead letters by, never masked: `{ order: '/order/id' }`. At most 8. Default: none",
      )
      .optional(),
    replay: replay.describe('Where replays are published and when replay runs pause').optional(),
  })
  .refine((one) => BROKERS.filter((name) => one[name] !== undefined).length === 1, {
    error: `expected exactly one of ${BROKERS.join(', ')}`,
  })
export type SourceConfig = z.output<typeof source>

/** Returns the broker of a source. The schema rejects a source with none or several. */
export function kindOf(config: SourceConfig): BrokerKind {
  const kind = BROKERS.find((name) => config[name] !== undefined)
  if (kind === undefined) throw new TypeError(`expected exactly one of ${BROKERS.join(', ')}`)
  return kind
}
