/** A library that a project uses, and the page for its users. */
export interface Library {
  readonly names: readonly string[]
  /** File name of the page in the folder docs. */
  readonly page: string
  /** What Redrive leaves as it is. */
  readonly unchanged: string
}

/** The libraries that `redrive init` detects in package.json and in source files. */
// biome-ignore format: one row per library, to be read as a table
export const LIBRARIES: readonly Library[] = [
  { names: ['@nestjs/microservices', '@golevelup/nestjs-rabbitmq'], page: 'migrate-nestjs-microservices.md', unchanged: 'queues, producers, and @EventPattern handlers' },
  { names: ['amqplib', 'amqp-connection-manager'], page: 'migrate-amqplib.md', unchanged: 'the queue with its type and arguments, its dead-letter queue, and producers' },
  { names: ['rascal'], page: 'migrate-rascal.md', unchanged: 'the queue, its bindings, and publications' },
  { names: ['kafkajs', '@confluentinc/kafka-javascript'], page: 'migrate-kafkajs.md', unchanged: 'the client, the topic, the group with its offsets, and producers' },
  { names: ['@platformatic/kafka'], page: 'kafka.md', unchanged: 'the topic, the group with its offsets, and producers' },
  { names: ['bullmq'], page: 'migrate-bullmq.md', unchanged: 'jobs that stay in BullMQ: schedules, priorities, flows' },
  { names: ['sqs-consumer', '@aws-sdk/client-sqs'], page: 'sqs.md', unchanged: 'the queue, its redrive policy with the dead-letter queue, and producers' },
  { names: ['@prisma/client', 'prisma'], page: 'postgres.md', unchanged: 'your tables and migrations; the outbox has its own schema' },
  { names: ['pg'], page: 'postgres.md', unchanged: 'your tables and migrations; the outbox has its own schema' },
]

export const pageUrl = (page: string): string =>
  `https://github.com/redrive/redrive/blob/main/docs/${page}`
