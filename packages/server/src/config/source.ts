import { z } from 'zod'
import { duration, flag, list, secret, secretUrl, text, whole } from './values.ts'

const AMQP = ['amqp:', 'amqps:']
export const POSTGRES: readonly string[] = ['postgres:', 'postgresql:']

const confirmTimeout = duration('100ms', '5m')
  .describe("How long a copy may stay unconfirmed before it counts as unknown. Default '10s'")
  .optional()

const rabbitmq = z.strictObject({
  url: z
    .union([secretUrl(AMQP), z.array(secretUrl(AMQP)).min(1)], {
      error: 'expected a URL that begins with amqp:// or amqps://, or a list of them',
    })
    .describe('Of the broker. Several for a cluster: when one node is gone, the next is tried'),
  queue: text(255).describe('The queue whose dead letters these are; replays go there'),
  deadLetterQueues: z
    .array(text(255))
    .min(1, { error: 'expected a list of queues' })
    .describe('Queues to drain, of any kind. Default: those that Redrive makes for the queue')
    .optional(),
  replayTo: z
    .enum(['queue', 'exchange'], { error: "expected 'queue' or 'exchange'" })
    .describe("Straight to the queue, or through the exchange it came by. Default 'queue'")
    .optional(),
  confirmTimeout,
})

const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const

const kafka = z.strictObject({
  brokers: list("brokers such as 'localhost:9092'").describe('`host:port` of some of the brokers'),
  topic: text(249).describe('The topic whose dead letters these are; replays go there'),
  group: text(255).describe('The consumer group whose dead letters these are'),
  deadLetterTopics: z
    .array(text(249))
    .min(1, { error: 'expected a list of topics' })
    .describe('Topics to drain, of any kind. Default: the one that Redrive makes')
    .optional(),
  drainGroup: text(200).describe("The group to drain with. Default 'redrive'").optional(),
  tls: z
    .union(
      [
        flag(),
        z.strictObject({
          ca: text(1_000_000).describe('PEM of the authority').optional(),
          cert: text(1_000_000).describe('PEM of our certificate').optional(),
          key: secret().describe('PEM of its key').optional(),
        }),
      ],
      { error: 'expected true, false, or ca, cert and key' },
    )
    .describe('Default false')
    .optional(),
  sasl: z
    .strictObject({
      mechanism: z.enum(MECHANISMS, { error: `expected one of ${MECHANISMS.join(', ')}` }),
      username: text(),
      password: secret(),
    })
    .describe('Who we are to the brokers. Default: nobody')
    .optional(),
  confirmTimeout,
})

const postgres = z.strictObject({
  url: secretUrl(POSTGRES).describe('Default: the database of the server').optional(),
  queue: text(255).describe('The queue of the outbox'),
})

const replay = z.strictObject({
  health: secretUrl(['http:', 'https:'])
    .describe('Answers 2xx within 2 s while the consumers can take more. Default: nobody is asked')
    .optional(),
  mostLag: whole(0, 1_000_000_000)
    .describe('A run pauses while the consumers are further behind. Default: nobody is asked')
    .optional(),
  inbox: z
    .strictObject({
      url: secretUrl(POSTGRES).describe('Default: the database of the server').optional(),
      consumer: text(255).describe('The name of the consumer in its inbox'),
    })
    .describe('Of the consumers: proves what was not confirmed in time. Default: none')
    .optional(),
  origins: list('queues or topics')
    .describe(
      'Others that its dead letters may say they came from, and go back to. Default: none, because who sends a message can write what it says',
    )
    .optional(),
})

/** What an ingest would refuse is refused here: the server would start, and ingest nothing. */
const pointer = () =>
  text().refine((value) => value.startsWith('/'), {
    error: "expected a JSON Pointer such as '/card/number'",
  })

const areFewNames = (said: Readonly<Record<string, string>>) => {
  const names = Object.keys(said)
  return names.length <= 8 && names.every((name) => name.length >= 1 && name.length <= 64)
}

/** The brokers that a source may be on. A name more, and the compiler lists the tables that lack its row. */
export const BROKERS = ['rabbitmq', 'kafka', 'postgres'] as const

export type BrokerKind = (typeof BROKERS)[number]

export const source = z
  .strictObject({
    rabbitmq: rabbitmq.optional(),
    kafka: kafka.optional(),
    postgres: postgres.optional(),
    handler: text(255).describe('Who handles its messages, for people and filters').optional(),
    retention: duration('1h', '3650d')
      .describe("How long a dead letter is kept after it was ingested. Default '14d'")
      .optional(),
    batch: whole(1, 5_000).describe('Most dead letters in one transaction. Default 500').optional(),
    maxPayloadBytes: whole(1, 536_870_912)
      .describe('Larger bodies are quarantined, without their rest. Default 128 MiB')
      .optional(),
    mask: z
      .array(pointer())
      .describe('JSON Pointers of values that nobody sees without `unmask`; `*` is any key')
      .optional(),
    maskHeaders: z.array(text()).describe('The same for headers, by name').optional(),
    preview: flag()
      .describe('Keep a masked copy in the clear. Default: unless payloads are encrypted')
      .optional(),
    extract: z
      .record(z.string(), pointer())
      .refine(areFewNames, { error: 'expected at most 8 names of 1 to 64 characters' })
      .describe("Values to find dead letters by: `{ order: '/order/id' }`. Never masked")
      .optional(),
    replay: replay.describe('Where replays go, and when they have to wait').optional(),
  })
  .refine((one) => BROKERS.filter((name) => one[name] !== undefined).length === 1, {
    error: `expected exactly one of ${BROKERS.join(', ')}`,
  })
export type SourceConfig = z.output<typeof source>

/** Returns the broker of a source. The schema refuses a source with none or several. */
export function kindOf(said: SourceConfig): BrokerKind {
  const kind = BROKERS.find((name) => said[name] !== undefined)
  if (kind === undefined) throw new TypeError(`expected exactly one of ${BROKERS.join(', ')}`)
  return kind
}
