import { z } from 'zod'
import { thresholds } from './alerts.ts'
import { clientTls } from './tls.ts'
import { duration, flag, list, secret, secretUrl, text, whole } from './values.ts'

const AMQP = ['amqp:', 'amqps:']
export const POSTGRES: readonly string[] = ['postgres:', 'postgresql:']

const confirmTimeout = duration('100ms', '5m')
  .describe(
    "How long to wait for the broker to confirm a copy. After it, the outcome is unknown. Default '10s'",
  )
  .optional()

const rabbitmq = z.strictObject({
  url: z
    .union([secretUrl(AMQP), z.array(secretUrl(AMQP)).min(1)], {
      error: 'expected a URL that begins with amqp:// or amqps://, or a list of them',
    })
    .describe('URL of the broker, or a list for a cluster: after a failure the next is tried'),
  queue: text(255).describe('Queue that the dead letters came from. Replays are published to it'),
  deadLetterQueues: z
    .array(text(255))
    .min(1, { error: 'expected a list of queues' })
    .describe('Queues to drain, of any type. Default: the ones of Redrive for the queue')
    .optional(),
  topology: z
    .enum(['declare', 'adopt', 'verify'], { error: "expected 'declare', 'adopt' or 'verify'" })
    .describe(
      "The same value as in the consumer. With 'adopt', `prefix` has another default. Default 'declare'",
    )
    .optional(),
  prefix: text(200)
    .describe(
      "Beginning of the names of the queues that Redrive has created. Default: the queue, with topology 'adopt' the queue and `.redrive`",
    )
    .optional(),
  replayTo: z
    .enum(['queue', 'exchange'], { error: "expected 'queue' or 'exchange'" })
    .describe("Publish replays to the queue directly, or to the original exchange. Default 'queue'")
    .optional(),
  tls: clientTls
    .describe('Certificates for amqps:// URLs. Default: the authorities of Node.js')
    .optional(),
  confirmTimeout,
})

const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const

const kafka = z.strictObject({
  brokers: list("brokers such as 'localhost:9092'").describe('`host:port` of one or more brokers'),
  topic: text(249).describe('Topic that the dead letters came from. Replays are published to it'),
  group: text(255).describe('Consumer group that the dead letters came from'),
  deadLetterTopics: z
    .array(text(249))
    .min(1, { error: 'expected a list of topics' })
    .describe('Topics to drain. Default: the dead-letter topic that Redrive creates')
    .optional(),
  drainGroup: text(200)
    .describe("Consumer group that drains the topics. Default 'redrive'")
    .optional(),
  tls: clientTls.describe('Use TLS: true, false, or certificates. Default false').optional(),
  sasl: z
    .strictObject({
      mechanism: z
        .enum(MECHANISMS, { error: `expected one of ${MECHANISMS.join(', ')}` })
        .describe('SASL mechanism'),
      username: text().describe('User name at the brokers'),
      password: secret().describe('Password at the brokers'),
    })
    .describe('Credentials for the brokers. Default: no authentication')
    .optional(),
  confirmTimeout,
})

const postgres = z.strictObject({
  url: secretUrl(POSTGRES)
    .describe('URL of the database with the queue. Default: the database of the server')
    .optional(),
  tls: clientTls
    .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
    .optional(),
  queue: text(255).describe('Queue of the outbox'),
})

const REDIS = ['redis:', 'rediss:']

const redis = z.strictObject({
  url: secretUrl(REDIS).describe('URL of the Redis or Valkey server'),
  stream: text(255).describe('Stream that the dead letters came from'),
  group: text(255).describe(
    'Consumer group that the dead letters came from, and that gets replays',
  ),
  body: text(255)
    .describe("Field of an entry that contains the body, as in the consumer. Default 'body'")
    .optional(),
})

const bullmq = z.strictObject({
  url: secretUrl(REDIS).describe('URL of the Redis or Valkey server'),
  queue: text(255).describe('Queue with the failed jobs. A replay retries the job in it'),
  prefix: text(255)
    .describe("Prefix of the keys of the queue, as in the workers. Default 'bull'")
    .optional(),
})

const NATS = ['nats:', 'tls:']

const nats = z.strictObject({
  url: z
    .union([secretUrl(NATS), z.array(secretUrl(NATS)).min(1)], {
      error: 'expected a URL that begins with nats:// or tls://, or a list of them',
    })
    .describe(
      'URL of the server, or a list for a cluster. It may contain a user and a password, or a token',
    ),
  stream: text(255).describe('Stream that the dead letters came from'),
  consumer: text(255).describe(
    'Consumer that gave them up, of Redrive or of another program. It gets replays',
  ),
  topology: z
    .enum(['declare', 'verify'], { error: "expected 'declare' or 'verify'" })
    .describe(
      "'declare' creates the missing streams of Redrive; 'verify' changes nothing. Default 'declare'",
    )
    .optional(),
  prefix: text(200)
    .describe('Beginning of the names of the streams of Redrive. Default: `<stream>-<consumer>`')
    .optional(),
  replicas: whole(1, 5)
    .describe('Copies of each message in new streams of Redrive (1–5). Default: as in the stream')
    .optional(),
  credentials: secret()
    .describe('File with the credentials of the user (`.creds`), or their text. Default: none')
    .optional(),
  tls: clientTls
    .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
    .optional(),
  confirmTimeout,
})

const SQS_QUEUE = /^(https?:\/\/[^/]+\/[^/]+\/)?[\w-]{1,80}(\.fifo)?$/
const sqsQueue = () =>
  text().refine((value) => SQS_QUEUE.test(value), {
    error: "expected the name or the URL of a queue, such as 'orders'",
  })

const sqs = z.strictObject({
  queue: sqsQueue().describe(
    'Queue that the dead letters came from: its name or its URL. Replays are sent to it',
  ),
  region: text(64)
    .describe('Region of the queue. Default: from the environment, such as AWS_REGION')
    .optional(),
  endpoint: secretUrl(['https:', 'http:'])
    .describe(
      'URL of a server with the API of SQS, or of a VPC endpoint. Default: that of the region',
    )
    .optional(),
  deadLetters: sqsQueue()
    .describe(
      'Queue to drain: its name or its URL. Default: the one that the redrive policy of the queue names, else the one of Redrive',
    )
    .optional(),
  topology: z
    .enum(['declare', 'verify'], { error: "expected 'declare' or 'verify'" })
    .describe(
      "'declare' creates the missing queues of Redrive; 'verify' changes nothing. Default 'declare'",
    )
    .optional(),
  timeout: duration('100ms', '1h')
    .describe("How long to wait for a response of SQS. Default '10s'")
    .optional(),
})

const leaveTransientFor = duration('0s', '3650d')
  .describe(
    "How long transient failures are left in the store, because `autoReplay` of the emitters sends them: its `maxAge`. Default '1d'",
  )
  .optional()

const fileStore = z.strictObject({
  directory: text().describe(
    'Directory of the store. The server must run as the user of the emitters',
  ),
  leaveTransientFor,
})

const redisStore = z.strictObject({
  url: secretUrl(REDIS).describe('URL of the Redis or Valkey server'),
  prefix: text(200).describe('Prefix of the store, as in the emitters'),
  retention: duration('1s', '3650d')
    .describe("How long a replayed event is kept until an emitter sends it. Default '30d'")
    .optional(),
  leaveTransientFor,
})

const postgresStore = z.strictObject({
  url: secretUrl(POSTGRES)
    .describe('URL of the database with the store. Default: the database of the server')
    .optional(),
  tls: clientTls
    .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
    .optional(),
  name: text(200).describe("Name of the store, as in the emitters. Default 'default'").optional(),
  leaveTransientFor,
})

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
