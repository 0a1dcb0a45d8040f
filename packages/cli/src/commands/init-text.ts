/** The brokers that a project seems to use, and the evidence for it. */
export interface DetectedBrokers {
  /** Names of the variables with broker addresses. Undefined: the project does not seem to use it. */
  readonly rabbitmq: string | undefined
  readonly kafka: string | undefined
  readonly nats: string | undefined
  readonly postgres: string | undefined
  readonly sqs: string | undefined
  /** Variable with the address of the server's database. */
  readonly database: string
  /** Evidence, for people: `amqplib in package.json`, `kafkajs in services/clicks.ts`. */
  readonly because: readonly string[]
}

type Broker = 'rabbitmq' | 'kafka' | 'nats' | 'postgres' | 'sqs'

/** Libraries that show the use of a broker. `pg` is missing, because it does not imply an outbox. */
const LIBRARIES: Readonly<Record<Broker, readonly string[]>> = {
  rabbitmq: [
    'amqplib',
    'amqp-connection-manager',
    'rabbitmq-client',
    'rascal',
    '@golevelup/nestjs-rabbitmq',
    '@cloudamqp/amqp-client',
    '@redrive/rabbitmq',
  ],
  kafka: [
    'kafkajs',
    '@confluentinc/kafka-javascript',
    '@platformatic/kafka',
    'node-rdkafka',
    '@redrive/kafka',
  ],
  nats: ['@nats-io/jetstream', '@redrive/nats'],
  postgres: ['@redrive/postgres'],
  sqs: ['@aws-sdk/client-sqs', 'sqs-consumer', '@redrive/sqs'],
}

/** Variables to look for. The first one is written when none is set. */
const VARIABLES: Readonly<Record<Broker | 'database', readonly string[]>> = {
  rabbitmq: ['RABBITMQ_URL', 'AMQP_URL', 'CLOUDAMQP_URL'],
  kafka: ['KAFKA_BROKERS', 'KAFKA_BOOTSTRAP_SERVERS'],
  nats: ['NATS_URL'],
  postgres: ['OUTBOX_DATABASE_URL'],
  sqs: ['SQS_QUEUE_URL', 'QUEUE_URL'],
  database: ['DATABASE_URL', 'POSTGRES_URL', 'PG_URL'],
}

/**
 * Returns the brokers of a project. `imports` has the first file that imports a library: the package.json of a
 * workspace names none.
 */
export function detect(
  dependencies: readonly string[],
  imports: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string | undefined>>,
): DetectedBrokers {
  const because: string[] = []
  const isSet = (name: string) => Boolean(env[name]) || Boolean(env[`${name}_FILE`])
  const variableOf = (of: Broker | 'database') => VARIABLES[of].find(isSet)
  const find = (broker: Broker): string | undefined => {
    const names = LIBRARIES[broker]
    const library =
      names.find((name) => dependencies.includes(name)) ?? names.find((name) => imports.has(name))
    const variable = variableOf(broker)
    if (library !== undefined)
      because.push(
        `${library} in ${dependencies.includes(library) ? 'package.json' : imports.get(library)}`,
      )
    if (variable !== undefined) because.push(`${variable} in the environment`)
    return library === undefined && variable === undefined
      ? undefined
      : (variable ?? VARIABLES[broker][0])
  }
  const found = {
    rabbitmq: find('rabbitmq'),
    kafka: find('kafka'),
    nats: find('nats'),
    postgres: find('postgres'),
    sqs: find('sqs'),
  }
  const database = variableOf('database')
  if (database !== undefined) because.push(`${database} in the environment`)
  return { ...found, database: database ?? 'DATABASE_URL', because }
}

/** Returns the text of the config. It contains only names of variables, never their values. */
export function configText({
  rabbitmq,
  kafka,
  nats,
  postgres,
  sqs,
  database,
}: DetectedBrokers): string {
  const sources = [
    ...(rabbitmq === undefined ? [] : [rabbitmqText(rabbitmq)]),
    ...(kafka === undefined ? [] : [kafkaText(kafka)]),
    ...(nats === undefined ? [] : [natsText(nats)]),
    ...(postgres === undefined ? [] : [POSTGRES_TEXT]),
    ...(sqs === undefined ? [] : [sqsText(sqs)]),
  ]
  return [HEAD(database), sources.length === 0 ? NO_SOURCES : `sources:\n${sources.join('')}`].join(
    '',
  )
}

/** The address in a first config. It is reachable only from this machine. */
export const LISTEN = '127.0.0.1:8080'

const HEAD = (database: string) => `\
# yaml-language-server: $schema=./node_modules/@redrive/server/redrive.config.schema.json
# \${NAME} is read from the environment variable NAME, or from the file in the variable NAME_FILE.

# The database of the server: the catalog of dead letters and the audit log.
database:
  url: \${${database}}

listen: ${LISTEN}

auth:
  # Every user who can connect has all permissions. Use this only to try Redrive on this machine. For a team:
  # oidc:
  #   issuer: https://id.example.com
  #   clientId: redrive
  #   clientSecret: \${OIDC_CLIENT_SECRET}
  development: {}

# Roles of users who sign in with oidc.
# access:
#   - groups: [on-call]
#     roles: [operator]
#     sources: ['*']

# Any user may approve a replay, also their own. Remove this line for a team.
approval: anyone

`

const rabbitmqText = (variable: string) => `\
  # Do not change this name later: it is part of the id of each dead letter.
  orders:
    rabbitmq:
      url: \${${variable}}
      queue: orders
      # Dead letters written by other libraries: deadLetterQueues: [orders.dlq]
`

const kafkaText = (variable: string) => `\
  clicks:
    kafka:
      brokers: \${${variable}}
      topic: clicks
      group: clicks-service
      # Dead letters written by other libraries: deadLetterTopics: [clicks.DLT]
`

const natsText = (variable: string) => `\
  invoices:
    nats:
      url: \${${variable}}
      stream: INVOICES
      # A consumer of Redrive, or a plain one with max_deliver
      consumer: ledger
`

const POSTGRES_TEXT = `\
  outbox:
    postgres:
      # If the outbox is in another database: url: \${OUTBOX_DATABASE_URL}
      queue: events
`

const sqsText = (variable: string) => `\
  shipments:
    sqs:
      # The name or the URL of the queue. Its redrive policy names the dead-letter queue
      queue: \${${variable}}
`

const NO_SOURCES = `\
# The queues and topics with dead letters.
sources: {}
#  orders:
#    rabbitmq:
#      url: \${RABBITMQ_URL}
#      queue: orders
`
