import type { Command } from 'commander'
import type { VerifyOptions } from '../commands/audit-verify.ts'
import type { DoctorOptions } from '../commands/doctor.ts'
import type { MigrateOptions } from '../commands/migrate.ts'
import type { ServeCommandOptions } from '../commands/serve.ts'
import type { TopologyOptions } from '../commands/topology.ts'
import type { CommonOptions } from '../io.ts'
import type { ConfigOptions } from '../server/config.ts'
import { changing, type Run, several } from './run.ts'

const configured = (command: Command): Command =>
  command.option(
    '-c, --config <file>',
    'the config of the server; default REDRIVE_CONFIG or redrive.config.* here',
  )

/** Commands for who runs the server. */
export function addServer(root: Command, run: Run): void {
  changing(
    root.command('init').description('write a first config for what the project here uses'),
  ).action(
    run(async (io, options) => (await import('../commands/init.ts')).initCommand(io, options)),
  )
  configured(root.command('serve').description('run the server'))
    .addOption(several('--role', 'what this process does: api, ingest, replay, watch; default all'))
    .option('--log-level <level>', 'how much it says, such as info or debug')
    .action(
      run<ServeCommandOptions>(async (io, options) =>
        (await import('../commands/serve.ts')).serveCommand(io, options),
      ),
    )
  configured(root.command('migrate').description('bring the schemas of the database up to date'))
    .option('--print-sql', 'print what would be run, for an administrator')
    .option('--dry-run', 'say what is missing, and do nothing')
    .action(
      run<MigrateOptions>(async (io, options) =>
        (await import('../commands/migrate.ts')).migrateCommand(io, options),
      ),
    )
  addConfig(root.command('config').description('the config of the server'), run)
  configured(
    root
      .command('doctor [addresses...]')
      .description('look for settings of brokers that lose, double or stall messages'),
  )
    .addOption(several('--accept', 'checks whose findings are known: they do not fail the command'))
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

/** `--accept` takes all that is after it. An address there was meant to be looked at, and may have a password in it. */
const isAddress = (text: string): boolean => text.includes('://')

function addTopology(root: Command, run: Run): void {
  configured(
    root.command('topology [addresses...]').description('queues, topics and the ways between them'),
  )
    .option('--mermaid', 'as a flowchart instead of a tree')
    .action(
      run<TopologyOptions>(async (io, options, addresses) =>
        (await import('../commands/topology.ts')).topology(io, addresses, options),
      ),
    )
}

type Options = CommonOptions & ConfigOptions

function addConfig(config: Command, run: Run): void {
  configured(
    config.command('validate').description('say whether the server would start with it'),
  ).action(
    run<Options>(async (io, options) =>
      (await import('../commands/config.ts')).validateConfig(io, options),
    ),
  )
  configured(
    config.command('print').description('as the server understands it, without its secrets'),
  ).action(
    run<Options>(async (io, options) =>
      (await import('../commands/config.ts')).printConfig(io, options),
    ),
  )
  config
    .command('schema')
    .description('its JSON Schema, for editors')
    .action(run(async (io) => (await import('../commands/config.ts')).printConfigSchema(io)))
}

/** Below `audit`, beside what the API answers. */
export function addVerify(audit: Command, run: Run): void {
  configured(
    audit
      .command('verify')
      .description('walk the chain in the database, and compare it with the checkpoints'),
  )
    .option('--checkpoints <file>', 'default: the file of the config')
    .option('--public-key <file>', 'PEM; default: of the signing key of the config')
    .action(
      run<VerifyOptions>(async (io, options) =>
        (await import('../commands/audit-verify.ts')).verifyAuditCommand(io, options),
      ),
    )
}
