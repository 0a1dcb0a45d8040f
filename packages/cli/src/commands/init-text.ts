/** What a project seems to use, and why we think so. */
export interface Detected {
  /** Names of variables that say where the brokers are. Undefined: it does not seem to use that one. */
  readonly rabbitmq: string | undefined
  readonly kafka: string | undefined
  readonly postgres: string | undefined
  /** Variable of the database for the server itself. */
  readonly database: string
  /** For people: `amqplib in package.json`. */
  readonly because: readonly string[]
}

type Broker = 'rabbitmq' | 'kafka' | 'postgres'

/** Libraries that only who uses the broker depends on. `pg` alone says nothing about an outbox. */
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
  postgres: ['@redrive/postgres'],
}

/** The first is the one that is written when none is set. */
const VARIABLES: Readonly<Record<Broker | 'database', readonly string[]>> = {
  rabbitmq: ['RABBITMQ_URL', 'AMQP_URL', 'CLOUDAMQP_URL'],
  kafka: ['KAFKA_BROKERS', 'KAFKA_BOOTSTRAP_SERVERS'],
  postgres: ['OUTBOX_DATABASE_URL'],
  database: ['DATABASE_URL', 'POSTGRES_URL', 'PG_URL'],
}

export function detect(
  dependencies: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Detected {
  const because: string[] = []
  const isSet = (name: string) => Boolean(env[name]) || Boolean(env[`${name}_FILE`])
  const variableOf = (of: Broker | 'database') => VARIABLES[of].find(isSet)
  const find = (broker: Broker): string | undefined => {
    const library = LIBRARIES[broker].find((name) => dependencies.includes(name))
    const variable = variableOf(broker)
    if (library !== undefined) because.push(`${library} in package.json`)
    if (variable !== undefined) because.push(`${variable} in the environment`)
    return library === undefined && variable === undefined
      ? undefined
      : (variable ?? VARIABLES[broker][0])
  }
  const found = { rabbitmq: find('rabbitmq'), kafka: find('kafka'), postgres: find('postgres') }
  const database = variableOf('database')
  if (database !== undefined) because.push(`${database} in the environment`)
  return { ...found, database: database ?? 'DATABASE_URL', because }
}

/** Only names of variables are written, never what is in them. */
export function configText({ rabbitmq, kafka, postgres, database }: Detected): string {
  const sources = [
    ...(rabbitmq === undefined ? [] : [rabbitmqText(rabbitmq)]),
    ...(kafka === undefined ? [] : [kafkaText(kafka)]),
    ...(postgres === undefined ? [] : [POSTGRES_TEXT]),
  ]
  return [HEAD(database), sources.length === 0 ? NO_SOURCES : `sources:\n${sources.join('')}`].join(
    '',
  )
}

/** Where the server of a first config answers: on this machine alone. */
export const LISTEN = '127.0.0.1:8080'

const HEAD = (database: string) => `\
# yaml-language-server: $schema=./node_modules/@redrive/server/redrive.config.schema.json
# \${NAME} is taken from the environment, or from the file that NAME_FILE names.

# For the catalog of dead letters, the audit and the server itself.
database:
  url: \${${database}}

listen: ${LISTEN}

auth:
  # Everybody who can connect may do everything: to try it on this machine, and nowhere else. For a team:
  # oidc:
  #   issuer: https://id.example.com
  #   clientId: redrive
  #   clientSecret: \${OIDC_CLIENT_SECRET}
  development: {}

# Who may do what, once people sign in.
# access:
#   - groups: [on-call]
#     roles: [operator]
#     sources: ['*']

# With one person there is nobody else to approve a replay; take it out for a team.
approval: anyone

`

const rabbitmqText = (variable: string) => `\
  # The name stays for ever: it is part of the identity of its dead letters.
  orders:
    rabbitmq:
      url: \${${variable}}
      queue: orders
      # Of others than Redrive: deadLetterQueues: [orders.dlq]
`

const kafkaText = (variable: string) => `\
  clicks:
    kafka:
      brokers: \${${variable}}
      topic: clicks
      group: clicks-service
      # Of others than Redrive: deadLetterTopics: [clicks.DLT]
`

const POSTGRES_TEXT = `\
  outbox:
    postgres:
      # In another database than that of the server: url: \${OUTBOX_DATABASE_URL}
      queue: events
`

const NO_SOURCES = `\
# Where dead letters are.
sources: {}
#  orders:
#    rabbitmq:
#      url: \${RABBITMQ_URL}
#      queue: orders
`
