import { textOf } from '../check/changed/graph.ts'

/** When a proof runs: before each merge, each night, or before each release. */
export type Tier = 'merge' | 'nightly' | 'release'

export const TIERS: readonly Tier[] = ['merge', 'nightly', 'release']

export interface Proof {
  readonly name: string
  /** A shell command, run in the root of the repository. Its exit status is the result. */
  readonly command: string
  readonly tier: Tier
  readonly shows: string
  /** Duration on two cores that also run the servers. */
  readonly minutes: number
  /**
   * The programs it starts. A change that reaches one of them selects the proof (`pnpm check
   * --changed`).
   */
  readonly starts: readonly string[]
  /**
   * Servers of `dev/services` that the command expects to be running. Other commands start what
   * they need.
   */
  readonly servers?: readonly string[]
  /**
   * The proofs of a lane run in turn, and the lanes at the same time, except in the release tier.
   * `processor`: only computes, and reads no built package; runs at low priority. `packages`: packs
   * packages, builds the console or has a separate clone, and restarts no server. Without a lane:
   * all others, most of which wait for brokers.
   */
  readonly lane?: 'processor' | 'packages'
  /** Servers to stop after the proof, so that they do not slow the next ones. */
  readonly stops?: readonly string[]
}

const vitest = (files: string) => `REDRIVE_PROOFS=1 vitest run --no-file-parallelism ${files}`
const POSTGRES_TESTS = 'packages/transports/postgres/test'
/** The contract also runs at another isolation level. The suites act as a second session, at the default one. */
const HOSTILE = `REDRIVE_HOSTILE_POSTGRES=settings vitest run ${POSTGRES_TESTS} && REDRIVE_HOSTILE_POSTGRES=isolation REDRIVE_PROOFS=1 vitest run ${POSTGRES_TESTS}/contract ${POSTGRES_TESTS}/produce ${POSTGRES_TESTS}/settings`
/**
 * Fails when the variable with the path of a program is not set. Otherwise vitest would skip the
 * tests and pass.
 */
const withProgram = (variable: string, command: string) =>
  `: "\${${variable}:?is not set to the path of the program}" && ${command}`
const demo = (name: string) => `pnpm --filter @redrive/example-${name} demo`
const demoStarts = (name: string) => [`examples/${name}/src/demo.ts`]
const faults = (name: string) => [`faults/src/${name}/main.ts`, ...FAULTS_ENTRY]
/**
 * Entry files of every fault proof. Only their own text counts, because their imports belong to all
 * subjects.
 */
const FAULTS_ENTRY = ['faults/src/main.ts', 'faults/src/subjects.ts'].map(textOf)
const DEMO_SERVERS = ['rabbitmq', 'postgres', 'kafka']
const CLUSTERS = ['rabbitmq-cluster', 'kafka-cluster', 'redis-cluster']
const SIMULATION = ['simulation/src/main.ts']
const README = [
  'README.md',
  'docs/get-started.md',
  'packages/core/src/index.ts',
  'packages/runtime/src/index.ts',
  'packages/transports/memory/src/index.ts',
]

/**
 * Other seeds every night; the range is printed. The start is the number of days since 1970 times
 * the number of seeds.
 */
const NIGHTLY_SEEDS = 'pnpm simulate --seeds 20000 --from $(( $(date +%s) / 86400 * 20000 ))'

/**
 * Every proof outside `pnpm check`, once. The merge tier has the proofs that find most per minute;
 * a longer form of the same proof is in a later tier. docs/proofs.md explains the tiers.
 */
// biome-ignore format: one row per proof, to be read as a table
export const PROOFS: readonly Proof[] = [
  { name: 'simulate', tier: 'merge', lane: 'processor', minutes: 1, command: 'pnpm simulate --seeds 2000', starts: SIMULATION, shows: 'no promise breaks in 2,000 seeded runs with faults' },
  { name: 'give-up', tier: 'merge', lane: 'processor', minutes: 0.3, command: 'pnpm simulate give-up --quick', starts: SIMULATION, shows: 'a failing message is given up in time, a good one in an outage is not, short form' },
  { name: 'storm', tier: 'merge', lane: 'processor', minutes: 1.5, command: 'pnpm simulate storm --quick --out .reports/storm', starts: SIMULATION, shows: 'no retry storm after an outage, short form' },
  { name: 'storm-grid', tier: 'merge', lane: 'processor', minutes: 0.4, command: 'pnpm simulate storm --grid --quick', starts: SIMULATION, shows: 'no retry storm at low and high rates, short form' },
  { name: 'readme', tier: 'merge', minutes: 0.5, command: 'pnpm readme', starts: README, shows: 'the programs of the README and of "Get started" run from the packed packages in an empty folder' },
  { name: 'fastify-installed', tier: 'nightly', lane: 'packages', minutes: 0.7, command: vitest('packages/fastify/test/installed.proof.ts'), starts: ['packages/fastify/test/installed.proof.ts'], shows: 'an app runs with the oldest and the newest Fastify 5, from the packed packages in an empty folder' },
  { name: 'nestjs-versions', tier: 'nightly', lane: 'packages', minutes: 1.5, command: vitest('packages/nestjs/test/versions.proof.ts'), starts: ['packages/nestjs/test/versions.proof.ts'], shows: 'one app runs with NestJS 11 and 12, as CommonJS and as modules, from the packed packages' },
  { name: 'matrix', tier: 'nightly', lane: 'packages', minutes: 5, command: vitest('packages/testing/test/matrix.proof.ts'), starts: ['packages/testing/test/matrix.proof.ts'], shows: 'one program compiles with TypeScript 5.5 to 7 and each setting of module, and runs on Node 22.12, 24 and 26, in Jest and Vitest, and as a bundle of esbuild and webpack' },
  { name: 'client-versions', tier: 'merge', minutes: 1.5, command: vitest('amqplib.proof kafkajs.proof'), starts: ['packages/transports/rabbitmq/test/amqplib.proof.ts', 'packages/transports/kafka/test/kafkajs.proof.ts'], shows: 'one service runs with every supported version of amqplib and kafkajs, from the packed packages' },
  { name: 'faults-rabbitmq-smoke', tier: 'merge', minutes: 1, command: 'pnpm faults rabbitmq --smoke', starts: faults('rabbitmq'), shows: 'RabbitMQ: kill at each boundary, a lost confirmation, a restart' },
  { name: 'faults-kafka-smoke', tier: 'merge', minutes: 1.5, command: 'pnpm faults kafka --smoke', starts: faults('kafka'), shows: 'Kafka: the same' },
  { name: 'faults-postgres-smoke', tier: 'merge', minutes: 1, command: 'pnpm faults postgres --smoke', starts: faults('postgres'), shows: 'PostgreSQL: the same' },
  { name: 'demo-order', tier: 'merge', minutes: 0.2, command: demo('order-service'), servers: DEMO_SERVERS, starts: demoStarts('order-service'), shows: 'an order service with outbox and inbox survives crashes' },

  { name: 'simulate-nightly', tier: 'nightly', lane: 'processor', minutes: 6, command: NIGHTLY_SEEDS, starts: SIMULATION, shows: 'no promise breaks in 20,000 seeds that differ each night' },
  { name: 'simulate-mutants', tier: 'nightly', lane: 'processor', minutes: 0.4, command: 'pnpm simulate --mutants', starts: SIMULATION, shows: 'the simulator finds each known mistake' },
  { name: 'give-up-full', tier: 'nightly', lane: 'processor', minutes: 1.2, command: 'pnpm simulate give-up', starts: SIMULATION, shows: 'the same, five seeds for each row' },
  { name: 'stress', tier: 'nightly', minutes: 8, command: vitest('stress.proof'), starts: [], shows: 'the contract of each transport, ten times in parallel' },
  { name: 'store-kills', tier: 'nightly', minutes: 1, command: vitest('packages/stores/file/test/processes.test.ts'), starts: [], shows: 'the file store keeps everything acknowledged in 20 kills; the merge tier has 8' },
  { name: 'contract-modes', tier: 'nightly', minutes: 3, command: vitest('packages/transports/postgres/test/contract-15.proof.ts packages/transports/kafka/test/contract-transactions.proof.ts packages/transports/nats/test/retention.proof.ts packages/transports/redis/test/contract-node-redis.proof.ts'), starts: [], shows: 'the whole contract on the oldest PostgreSQL, with transactions of Kafka, on work queues and interest streams of NATS, and with the client @redis/client; the gate has PostgreSQL 18, and the hand-offs of the others' },
  { name: 'hostile-postgres', tier: 'nightly', minutes: 5, command: HOSTILE, starts: [], shows: 'the tests of the outbox pass on databases whose defaults change dates, bytes, texts, names and isolation' },
  { name: 'postgres-pooler', tier: 'nightly', minutes: 1, command: vitest('packages/transports/postgres/test/pooler.proof.ts'), starts: [], stops: ['pgbouncer'], shows: 'behind PgBouncer in transaction mode: claims, leases, lanes, inbox, producer and maintenance, with and without listen' },
  { name: 'postgres-orms', tier: 'nightly', minutes: 0.7, command: vitest('packages/transports/postgres/test/orm.proof.ts'), starts: [], shows: 'events are added in transactions of Prisma, TypeORM and MikroORM, and undone by their rollback' },
  { name: 'cluster', tier: 'nightly', minutes: 7, command: vitest('cluster.proof'), starts: [], stops: CLUSTERS, shows: 'the contract on three nodes of RabbitMQ and Kafka, one killed, and on a Redis Cluster' },
  { name: 'doctor', tier: 'nightly', minutes: 3, command: vitest('packages/doctor/test/rabbitmq.proof.ts packages/doctor/test/kafka.proof.ts packages/doctor/test/postgres.proof.ts'), starts: [], stops: CLUSTERS, shows: 'the doctor finds wrong settings of clusters' },
  { name: 'terminal', tier: 'nightly', minutes: 0.5, command: vitest('packages/cli/test/terminal.proof.ts packages/cli/test/plain-terminal.proof.ts'), starts: [], shows: 'an incident typed into a real terminal looks as documented' },
  { name: 'cli-size', tier: 'nightly', lane: 'packages', minutes: 2, command: vitest('packages/cli/test/packed.proof.ts'), starts: [], shows: 'npx redrive installs one package of at most 15 MB, peeks within 5 s, and names what other commands need' },
  { name: 'site', tier: 'nightly', lane: 'packages', minutes: 5, command: vitest('packages/console/test/browser/site.proof.ts'), starts: [], shows: 'every page of the documentation site, light and dark, wide and narrow: no broken link, no shift of the layout, axe finds nothing, search without a network' },
  { name: 'first-minutes', tier: 'nightly', lane: 'packages', minutes: 3, command: vitest('packages/cli/test/first-minutes.proof.ts'), starts: [], shows: 'a new user starts npx redrive dev from packed packages and replays a group within 3 min; transcript in .reports/first-minutes.txt' },
  { name: 'dashboards', tier: 'nightly', lane: 'packages', minutes: 3, command: vitest('packages/server/test/dashboards/dashboards.proof.ts'), starts: [], shows: 'each query of each Grafana dashboard and each alias of a metric returns data from a real Prometheus during an outage and a replay; pictures in .reports/dashboards' },
  { name: 'traces', tier: 'nightly', minutes: 0.5, command: vitest('packages/server/test/traces.proof.ts'), starts: [], shows: 'the traces of one message through retry, dead letter and replay, as a real OpenTelemetry Collector gets them: spans, links, attributes' },
  { name: 'collector', tier: 'nightly', minutes: 0.3, command: vitest('packages/sinks/test/collector.proof.ts'), starts: [], shows: 'a real OpenTelemetry Collector accepts the requests of the sink; it is built on the first run, in some minutes' },
  { name: 'chart', tier: 'nightly', lane: 'packages', minutes: 0.5, command: vitest('packages/server/test/chart.proof.ts'), starts: [], shows: 'the Helm chart passes lint, selects pods that exist, runs without root, and writes a config that the server accepts; Helm is built on the first run, in 3 min' },
  { name: 'console-limits', tier: 'nightly', lane: 'packages', minutes: 8, command: vitest('packages/console/test/browser/hostile.proof.ts packages/console/test/browser/rights.proof.ts packages/console/test/browser/requests.proof.ts'), starts: ['packages/console/src/main.tsx'], shows: 'every screen shows hostile text as text; visible actions are those that the caller may use; requests per minute stay below their limits' },
  { name: 'console-pictures', tier: 'nightly', lane: 'packages', minutes: 5, command: vitest('packages/console/test/browser/pictures.proof.ts'), starts: ['packages/console/src/main.tsx'], shows: 'every screen of the console in its states, light and dark, wide and narrow: pictures in .reports/console, axe finds nothing, and pictures of the first screens look as stored' },
  { name: 'console-triage-quick', tier: 'nightly', lane: 'packages', minutes: 2, command: vitest('packages/console/test/browser/triage-quick.proof.ts'), starts: ['packages/console/src/main.tsx'], shows: 'two people triage three causes on RabbitMQ, Kafka and PostgreSQL in the console, by mouse and by keyboard alone, 1,000 dead letters' },
  { name: 'console-speed-quick', tier: 'nightly', lane: 'packages', minutes: 2, command: vitest('packages/console/test/browser/speed-quick.proof.ts'), starts: ['packages/console/src/main.tsx'], shows: 'the console paints an interaction in time with 100,000 dead letters and a list of 5,000 rows; its memory stays flat over 12 minutes of updates' },
  { name: 'faults-rabbitmq-quick', tier: 'nightly', minutes: 3, command: 'pnpm faults rabbitmq --quick', starts: faults('rabbitmq'), shows: 'RabbitMQ: all fault scenarios, short form' },
  { name: 'faults-kafka-quick', tier: 'nightly', minutes: 6, command: 'pnpm faults kafka --quick', starts: faults('kafka'), shows: 'Kafka: the same' },
  { name: 'faults-postgres-quick', tier: 'nightly', minutes: 3, command: 'pnpm faults postgres --quick', starts: faults('postgres'), shows: 'PostgreSQL: the same' },
  { name: 'faults-nats-quick', tier: 'nightly', minutes: 5, command: 'pnpm faults nats --quick', starts: faults('nats'), stops: ['nats-cluster'], shows: 'NATS JetStream: the same, with the loss of one server of three' },
  { name: 'faults-sqs-quick', tier: 'nightly', minutes: 5, command: 'pnpm faults sqs --quick', starts: faults('sqs'), stops: ['elasticmq-restarts'], shows: 'Amazon SQS (ElasticMQ): the same, with messages that are delivered twice' },
  { name: 'faults-redis-quick', tier: 'nightly', minutes: 5, command: 'pnpm faults redis --quick', starts: faults('redis'), stops: ['redis-pair'], shows: 'Redis: the same, with a fail-over to a replica that is behind' },
  { name: 'faults-emission-quick', tier: 'nightly', minutes: 1, command: 'pnpm faults emission --quick', starts: faults('emission'), shows: 'sinks and stores under outages and kills, short form' },
  { name: 'faults-catalog-quick', tier: 'nightly', minutes: 3, command: 'pnpm faults catalog --quick', starts: faults('catalog'), shows: 'kill at every point of the replay protocol, short form' },
  { name: 'faults-server-quick', tier: 'nightly', minutes: 2.5, command: 'pnpm faults server --quick', starts: faults('server'), shows: 'the server killed, attacked and loaded, short form' },
  { name: 'faults-alerts-quick', tier: 'nightly', minutes: 2, command: 'pnpm faults alerts --quick', starts: faults('alerts'), shows: 'seven incidents on a real Prometheus and Alertmanager: the right alert fires in time, no other one fires, all resolve' },
  { name: 'demo-invoice', tier: 'nightly', minutes: 0.2, command: demo('invoice-service'), servers: ['nats'], starts: demoStarts('invoice-service'), shows: 'orders of an existing stream of NATS JetStream, and a replay that no other consumer gets' },
  { name: 'demo-parcel', tier: 'nightly', minutes: 0.1, command: demo('parcel-service'), servers: DEMO_SERVERS, starts: demoStarts('parcel-service'), shows: 'ordered parcels on Kafka' },
  { name: 'demo-payment', tier: 'nightly', minutes: 0.1, command: demo('payment-service'), servers: DEMO_SERVERS, starts: demoStarts('payment-service'), shows: 'payments whose log sink is down' },
  { name: 'demo-profile', tier: 'nightly', minutes: 0.1, command: demo('profile-service'), servers: DEMO_SERVERS, starts: demoStarts('profile-service'), shows: 'profiles on RabbitMQ whose database goes away' },
  { name: 'demo-refund', tier: 'nightly', minutes: 0.2, command: demo('refund-service'), servers: ['elasticmq'], starts: demoStarts('refund-service'), shows: 'refunds of an existing queue of SQS, and a dead letter from before Redrive' },
  { name: 'demo-shipping', tier: 'nightly', minutes: 0.1, command: demo('shipping-service'), servers: ['redis'], starts: demoStarts('shipping-service'), shows: 'orders of an existing Redis stream, and failed jobs of BullMQ' },
  { name: 'demo-triage', tier: 'nightly', minutes: 0.1, command: demo('triage-desk'), servers: DEMO_SERVERS, starts: demoStarts('triage-desk'), shows: 'dead letters grouped, replayed and confirmed' },
  { name: 'node-22', tier: 'nightly', lane: 'packages', minutes: 15, command: 'dev/proofs/node-22', starts: [], shows: 'the whole gate on the oldest supported Node' },
  { name: 'faults-mutants', tier: 'nightly', minutes: 33, command: 'pnpm faults all --mutants', starts: ['faults/src/main.ts'], shows: 'the fault scenarios find each known mistake' },

  { name: 'storm-full', tier: 'release', minutes: 10, command: 'pnpm simulate storm --out .reports/storm', starts: SIMULATION, shows: 'no retry storm, all outages and policies' },
  { name: 'storm-grid-full', tier: 'release', minutes: 25, command: 'pnpm simulate storm --grid', starts: SIMULATION, shows: 'no retry storm at every rate, number of consumers, timeout and outage' },
  ...['rabbitmq', 'kafka', 'nats', 'sqs', 'redis', 'postgres', 'emission', 'catalog', 'server', 'alerts'].map((name): Proof => ({ name: `faults-${name}`, tier: 'release', minutes: 20, command: `pnpm faults ${name}`, starts: faults(name), shows: `${name}: all fault scenarios at full size` })),
  ...['core', 'file-store', 'emission', 'rabbitmq', 'rabbitmq-memory', 'rabbitmq-telemetry', 'kafka', 'kafka-poison', 'postgres', 'redis', 'sqs', 'catalog', 'server'].map((name): Proof => ({ name: `bench-${name}`, tier: 'release', minutes: 20, command: `pnpm bench ${name}`, starts: [`bench/src/cases/${name}.ts`], shows: `${name}: cost compared with the bare client and with peers, judged` })),
  { name: 'bench-growth', tier: 'release', minutes: 150, command: 'pnpm bench growth', starts: ['bench/src/cases/growth.ts'], shows: 'the cost of consumers, sources, groups, dead letters, replay runs and messages in flight grows at most with its size, up to 10 million dead letters' },
  { name: 'bench-growth-hour', tier: 'release', minutes: 110, command: 'pnpm bench growth --only hour', starts: ['bench/src/cases/growth.ts'], shows: 'an hour of ingest, reads and replays at 10 million dead letters: reads stay as fast, memory stays flat, and no message is lost' },
  { name: 'mutate', tier: 'release', minutes: 60, command: 'pnpm mutate', starts: [], shows: 'the tests of core notice changes of its code' },
  { name: 'console-triage', tier: 'release', minutes: 8, command: vitest('packages/console/test/browser/triage.proof.ts'), starts: ['packages/console/src/main.tsx'], shows: 'the same with 40,000 dead letters' },
  { name: 'console-speed', tier: 'release', minutes: 30, command: vitest('packages/console/test/browser/speed.proof.ts'), starts: ['packages/console/src/main.tsx'], shows: 'the same with 5,000,000 dead letters, a list of 100,000 rows and an hour of updates' },
  { name: 'loki', tier: 'release', minutes: 2, command: withProgram('REDRIVE_LOKI', vitest('packages/sinks/test/loki.proof.ts')), starts: [], shows: 'a real Loki accepts the requests of the sink' },
]
