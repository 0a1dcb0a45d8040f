/** The pages of the site by section. A page of docs/ that is in no section is in the menu under "More". */
export interface Section {
  readonly title: string
  /** Titles and paths below docs/, without the extension. */
  readonly pages: readonly (readonly [title: string, path: string])[]
}

export const SECTIONS: readonly Section[] = [
  {
    title: 'Start',
    pages: [
      ['Get started', 'get-started'],
      ['First minutes with the server', 'first-minutes'],
      ['Choose packages', 'choose-packages'],
      ['TypeScript, Node, bundlers', 'projects'],
      ['Comparison', 'comparison'],
    ],
  },
  {
    title: 'Guides',
    pages: [
      ['Retries, outages, poison', 'policy'],
      ['Logs and health', 'logging'],
      ['Metrics and traces', 'telemetry'],
      ['Order per customer', 'order'],
      ['Test handlers', 'testing'],
      ['Emit events', 'emitting'],
      ['Sinks', 'sinks'],
      ['Stores', 'stores'],
      ['Fastify', 'fastify'],
      ['NestJS', 'nestjs'],
      ['A Node program', 'node'],
      ['From amqplib', 'migrate-amqplib'],
      ['From rascal', 'migrate-rascal'],
      ['From BullMQ', 'migrate-bullmq'],
      ['From kafkajs', 'migrate-kafkajs'],
      ['From NestJS microservices', 'migrate-nestjs-microservices'],
    ],
  },
  {
    title: 'Brokers',
    pages: [
      ['RabbitMQ', 'rabbitmq'],
      ['Kafka', 'kafka'],
      ['NATS JetStream', 'nats'],
      ['PostgreSQL', 'postgres'],
      ['Redis Streams', 'redis'],
      ['Amazon SQS', 'sqs'],
      ['Failed jobs of BullMQ', 'bullmq'],
      ['Check broker settings', 'doctor'],
      ['Add a transport', 'adding-a-transport'],
    ],
  },
  {
    title: 'Operations',
    pages: [
      ['Replay dead letters', 'replaying'],
      ['Filter dead letters', 'filters'],
      ['Server', 'server'],
      ['Docker, Kubernetes, Node', 'deploy'],
      ['Replicas', 'replicas'],
      ['Sizing', 'sizing'],
      ['Alerts', 'alerts'],
      ['Dashboards', 'dashboards'],
      ['Runbooks', 'runbooks'],
      ['Connections', 'connections'],
      ['Upgrade', 'upgrade'],
      ['Remove Redrive', 'remove'],
    ],
  },
  {
    title: 'Concepts',
    pages: [
      ['Failure groups', 'grouping'],
      ['Security of the server', 'security'],
      ['Threat model', 'threat-model'],
      ['Security requirements', 'security-requirements'],
    ],
  },
  {
    title: 'Reference',
    pages: [
      ['Overview', 'reference/README'],
      ['Options', 'reference/options'],
      ['Errors', 'reference/errors'],
      ['Events', 'reference/events'],
      ['Headers', 'reference/headers'],
      ['Metrics', 'reference/metrics'],
      ['Config of the server', 'reference/config'],
      ['Commands', 'reference/cli'],
      ['HTTP API', 'reference/http-api'],
      ['Classification', 'reference/classification'],
    ],
  },
  {
    title: 'Evidence',
    pages: [
      ['Cost of a message', 'cost'],
      ['Checks and proofs', 'proofs'],
      ['Simulator', 'simulation'],
      ['Fault tests', 'faults'],
      ['Benchmarks', 'benchmarks'],
      ['Mutation testing', 'mutation'],
    ],
  },
  {
    title: 'Decisions',
    pages: [
      ['Overview', 'decisions/README'],
      ['Core', 'decisions/core'],
      ['Runtime', 'decisions/runtime'],
      ['Emission', 'decisions/emission'],
      ['Catalog', 'decisions/catalog'],
      ['Replay', 'decisions/replay'],
      ['RabbitMQ', 'decisions/rabbitmq'],
      ['Kafka', 'decisions/kafka'],
      ['NATS', 'decisions/nats'],
      ['PostgreSQL', 'decisions/postgresql'],
      ['Amazon SQS', 'decisions/sqs'],
      ['Stores', 'decisions/stores'],
      ['Server', 'decisions/server'],
      ['Console', 'decisions/console'],
      ['Tooling', 'decisions/tooling'],
    ],
  },
]

/** Questions of new users, the page with the answer, and words of the answer. */
export const QUESTIONS: readonly (readonly [question: string, path: string, answer: RegExp])[] = [
  ['How do I keep the order per customer?', 'order', /RabbitMQ.*laneOf[^]*Kafka[^]*PostgreSQL/],
  ['What happens on SIGTERM in my consumer?', 'node', /SIGTERM/],
  ['How do I migrate from rascal?', 'migrate-rascal', /rascal/],
  ['How do I migrate from BullMQ?', 'migrate-bullmq', /BullMQ/],
  ['How do I use it with NestJS?', 'nestjs', /module/i],
  ['How many connections does it open?', 'connections', /RabbitMQ consumer \| 2/],
  ['How do I upgrade library, schema and messages?', 'upgrade', /redrive migrate[^]*headers/],
  ['How do I remove it?', 'remove', /put-back/],
  ['How do I run two replicas of the server?', 'replicas', /redrive serve/],
  ['Where are the metrics of my consumer?', 'telemetry', /metrics/i],
  ['How do I send alerts to Slack?', 'alerts', /slack:[^]*url:/],
  ['How do I run the server in Docker or Kubernetes?', 'deploy', /dockerfile[^]*kind: Deployment/],
  ['How do I adopt my existing queue without downtime?', 'rabbitmq', /topology: 'adopt'/],
  ['What does it cost in throughput and latency?', 'cost', /throughput[^]*Latency/],
]
