import type { Command } from 'commander'
import type { TestAlertsOptions } from '../commands/alerts-test.ts'
import type { VerifyOptions } from '../commands/audit-verify.ts'
import type { DevOptions } from '../commands/dev.ts'
import type { DoctorOptions } from '../commands/doctor.ts'
import type { InitOptions } from '../commands/init.ts'
import type { MigrateOptions } from '../commands/migrate.ts'
import type { PutBackCommandOptions } from '../commands/put-back.ts'
import type { ServeCommandOptions } from '../commands/serve.ts'
import type { PlanTopologyOptions, PrintTopologyOptions } from '../commands/topology-plan.ts'
import type { TopologyOptions } from '../commands/topology.ts'
import type { CommonOptions } from '../io.ts'
import type { ConfigOptions } from '../server/config.ts'
import { type BindAction, certified, changing, oneOf, several, whole } from './command.ts'

const configured = (command: Command): Command =>
  command.option(
    '-c, --config <file>',
    'server config file (default: REDRIVE_CONFIG, or redrive.config.* in this directory)',
  )

/** Adds the commands for operators of the server. */
export function addServer(root: Command, run: BindAction): void {
  addDev(root, run)
  changing(
    root
      .command('init')
      .description('write a first config for this project, and show how its consumers change'),
  )
    .option('--write', 'also change the consumers; asks before each file')
    .action(
      run<InitOptions>(async (io, options) =>
        (await import('../commands/init.ts')).initCommand(io, options),
      ),
    )
  configured(root.command('serve').description('run the server'))
    .addOption(several('--role', 'roles of this process: api, ingest, replay, watch (default all)'))
    .option('--log-level <level>', 'lowest level to log, such as debug (default info)')
    .action(
      run<ServeCommandOptions>(async (io, options) =>
        (await import('../commands/serve.ts')).serveCommand(io, options),
      ),
    )
  configured(root.command('migrate').description('migrate the database schemas'))
    .option('--print-sql', 'print the SQL, for a database administrator')
    .option(
      '--print-grants <role>',
      'print the SQL that lets a role run the server without owning the tables',
    )
    .option('--dry-run', 'list missing migrations without applying them')
    .action(
      run<MigrateOptions>(async (io, options) =>
        (await import('../commands/migrate.ts')).migrateCommand(io, options),
      ),
    )
  configured(
    root
      .command('put-back <source>')
      .description('return the open dead letters and set-aside messages of a source to its queue'),
  )
    .option('-y, --yes', 'skip the confirmation prompt')
    .option('--start-ingest', 'start the ingest of the source again, and put nothing back')
    .action(
      run<PutBackCommandOptions>(async (io, options, [source = '']) =>
        (await import('../commands/put-back.ts')).putBackCommand(io, source, options),
      ),
    )
  addConfig(root.command('config').description('check and print the server config'), run)
  addAlerts(root.command('alerts').description('test the channels of alerts'), run)
  certified(
    configured(
      root
        .command('doctor [addresses...]')
        .description('find broker settings that lose, duplicate or stall messages'),
    ),
  )
    .addOption(several('--accept', 'checks whose findings do not fail the command'))
    .action(
      run<DoctorOptions>(async (io, { accept = [], ...options }, addresses) =>
        (await import('../commands/doctor.ts')).doctor(
          io,
          [...addresses, ...accept.filter(isAddress)],
          { ...options, accept: accept.filter((one) => !isAddress(one)) },
        ),
      ),
    )
  addTopology(root, run)
}

function addDev(root: Command, run: BindAction): void {
  root
    .command('dev [queue]')
    .description('try Redrive: start a database, the server, the console and a shop with failures')
    .option(
      '--attach <address>',
      'use the dead letters of a queue on this RabbitMQ, without the shop',
    )
    .addOption(
      several('--dead-letter-queue', 'with --attach: queues to read (default: those of Redrive)'),
    )
    .option('-y, --yes', 'with --attach: take the dead letters without asking')
    .option('--dir <folder>', 'folder with all data (default .redrive)')
    .option('--fresh', 'delete the data of an earlier start first')
    .option('--port <port>', 'port of the server on 127.0.0.1', whole, 8080)
    .option('--database <url>', 'use this PostgreSQL database instead of a new one')
    .option('--no-open', 'do not open the browser')
    .action(
      run<DevOptions>(async (io, options, [queue]) =>
        (await import('../commands/dev.ts')).devCommand(
          io,
          queue === undefined ? options : { ...options, queue },
        ),
      ),
    )
}

/**
 * Recognises an address among the values of `--accept`, which takes all following arguments. An address is
 * to be diagnosed, and must not be printed as an unknown check: it may contain a password.
 */
const isAddress = (text: string): boolean => text.includes('://')

function addTopology(root: Command, run: BindAction): void {
  const topology = configured(
    root
      .command('topology [addresses...]')
      .description('show queues, topics and the routes between them'),
  )
    .option('--mermaid', 'print a Mermaid flowchart instead of a tree')
    .action(
      run<TopologyOptions>(async (io, options, addresses) =>
        (await import('../commands/topology.ts')).topology(io, addresses, options),
      ),
    )
  forQueue(
    topology
      .command('plan <address>')
      .description('print what a consumer of RabbitMQ or NATS needs, without connecting'),
  )
    .addOption(
      oneOf('--format <format>', 'shell commands, or definitions.json of RabbitMQ', [
        'commands',
        'definitions',
      ]).default('commands'),
    )
    .action(
      run<PrintTopologyOptions>(async (io, options, [address = '']) =>
        (await import('../commands/topology-plan.ts')).planTopology(io, address, options),
      ),
    )
  forQueue(
    topology
      .command('apply <address>')
      .description('create what a consumer of RabbitMQ or NATS needs'),
  ).action(
    run<PlanTopologyOptions>(async (io, options, [address = '']) =>
      (await import('../commands/topology-plan.ts')).createTopology(io, address, options),
    ),
  )
}

const forQueue = (command: Command): Command =>
  command
    .option('--queue <name>', 'RabbitMQ: the queue to consume')
    .option('--adopt', 'the queue exists; create only the queues of Redrive next to it')
    .option('--prefix <text>', 'text that the names of the queues or streams of Redrive begin with')
    .option('--stream <name>', 'NATS: the stream to consume')
    .option('--consumer <name>', 'NATS: the durable consumer of the stream')
    .addOption(several('--subject', 'NATS: subjects of a stream that does not exist yet'))
    .option('--replicas <count>', 'NATS: copies of each message in new streams (1–5)', whole)
    .addOption(
      oneOf('--type <type>', 'type of the queue to consume', ['quorum', 'classic']).default(
        'quorum',
      ),
    )
    .addOption(
      oneOf('--order <order>', 'the option order of the consumer', ['none', 'lane']).default(
        'none',
      ),
    )

type Options = CommonOptions & ConfigOptions

function addConfig(config: Command, run: BindAction): void {
  configured(
    config.command('validate').description('check the config without starting the server'),
  ).action(
    run<Options>(async (io, options) =>
      (await import('../commands/config.ts')).validateConfig(io, options),
    ),
  )
  configured(
    config.command('print').description('print the config with defaults and without secrets'),
  ).action(
    run<Options>(async (io, options) =>
      (await import('../commands/config.ts')).printConfig(io, options),
    ),
  )
  config
    .command('schema')
    .description('print the JSON Schema of the config, for editors')
    .action(run(async (io) => (await import('../commands/config.ts')).printConfigSchema(io)))
}

function addAlerts(alerts: Command, run: BindAction): void {
  configured(
    alerts
      .command('test [channel]')
      .description('send a test alert and its end to the channels of the config, such as slack'),
  )
    .option('--dry-run', 'print the messages without sending them')
    .action(
      run<TestAlertsOptions>(async (io, options, [channel]) =>
        (await import('../commands/alerts-test.ts')).testAlerts(io, channel, options),
      ),
    )
}

/** Adds `audit verify`. It reads the database and not the API. */
export function addVerify(audit: Command, run: BindAction): void {
  configured(
    audit
      .command('verify')
      .description('verify the hash chain in the database and compare it with the checkpoints'),
  )
    .option('--checkpoints <file>', 'checkpoint file (default: the one in the config)')
    .option('--public-key <file>', 'public key, PEM (default: from the signing key in the config)')
    .action(
      run<VerifyOptions>(async (io, options) =>
        (await import('../commands/audit-verify.ts')).verifyAuditCommand(io, options),
      ),
    )
}
