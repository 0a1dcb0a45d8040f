import { z } from 'zod'
import { clientTls } from './tls.ts'
import { duration, list, secret, secretUrl, text, whole } from './values.ts'

const AMQP = ['amqp:', 'amqps:']
export const POSTGRES: readonly string[] = ['postgres:', 'postgresql:']

const confirmTimeout = duration('100ms', '5m')
  .describe(
    "How long to wait for the broker to confirm a copy. After it, the outcome is unknown. Default '10s'",
  )
  .optional()

export const rabbitmq = z.strictObject({
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

export const kafka = z.strictObject({
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

/** The same rule as in the outbox, so that a mistake is reported at the start. */
export const outboxSchema = z
  .string()
  .regex(/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/, {
    error:
      "expected at most 63 lower-case letters, digits and '_', not starting with a digit or 'pg_'",
  })
  .describe("Schema of the outbox and the inbox, as given to `migrate`. Default 'redrive'")
  .optional()

export const postgres = z.strictObject({
  url: secretUrl(POSTGRES)
    .describe('URL of the database with the queue. Default: the database of the server')
    .optional(),
  tls: clientTls
    .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
    .optional(),
  queue: text(255).describe('Queue of the outbox'),
  schema: outboxSchema,
})

const REDIS = ['redis:', 'rediss:']

export const redis = z.strictObject({
  url: secretUrl(REDIS).describe('URL of the Redis or Valkey server'),
  stream: text(255).describe('Stream that the dead letters came from'),
  group: text(255).describe(
    'Consumer group that the dead letters came from, and that gets replays',
  ),
  body: text(255)
    .describe("Field of an entry that contains the body, as in the consumer. Default 'body'")
    .optional(),
})

export const bullmq = z.strictObject({
  url: secretUrl(REDIS).describe('URL of the Redis or Valkey server'),
  queue: text(255).describe('Queue with the failed jobs. A replay retries the job in it'),
  prefix: text(255)
    .describe("Prefix of the keys of the queue, as in the workers. Default 'bull'")
    .optional(),
})

const NATS = ['nats:', 'tls:']

export const nats = z.strictObject({
  url: z
    .union([secretUrl(NATS), z.array(secretUrl(NATS)).min(1)], {
      error: 'expected a URL that begins with nats:// or tls://, or a list of them',
    })
    .describe(
      'URL of the server, or a list for a cluster. It may contain a user and a password, or a token',
    ),
  stream: text(255).describe('Stream that the dead letters came from'),
  consumer: text(255).describe(
    'Consumer whose dead letters to read, of Redrive or of another program. It gets the replays',
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

export const sqs = z.strictObject({
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
      'Queue to drain: its name or its URL. Default: the dead-letter queue in the redrive policy of the source, else that of Redrive',
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

export const fileStore = z.strictObject({
  directory: text().describe(
    'Directory of the store. The server must run as the user of the emitters',
  ),
  leaveTransientFor,
})

export const redisStore = z.strictObject({
  url: secretUrl(REDIS).describe('URL of the Redis or Valkey server'),
  prefix: text(200).describe('Prefix of the store, as in the emitters'),
  retention: duration('1s', '3650d')
    .describe("How long a replayed event is kept until an emitter sends it. Default '30d'")
    .optional(),
  leaveTransientFor,
})

export const postgresStore = z.strictObject({
  url: secretUrl(POSTGRES)
    .describe('URL of the database with the store. Default: the database of the server')
    .optional(),
  tls: clientTls
    .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
    .optional(),
  name: text(200).describe("Name of the store, as in the emitters. Default 'default'").optional(),
  leaveTransientFor,
})
