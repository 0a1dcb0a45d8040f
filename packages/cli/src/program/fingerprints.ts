import type { Command } from 'commander'
import type { ApplyOptions, TestOptions } from '../commands/fingerprints.ts'
import { type BindAction, changing, several } from './command.ts'

/** Adds the commands for fingerprint rules. */
export function addFingerprints(root: Command, run: BindAction): void {
  const fingerprints = root
    .command('fingerprints')
    .description('list, test and apply the rules that name groups')
  fingerprints
    .command('list')
    .description('list the fingerprint rules of the server')
    .action(
      run(async (io, options) =>
        (await import('../commands/fingerprints.ts')).listFingerprints(io, options),
      ),
    )
  fingerprints
    .command('test')
    .description('count the open dead letters that the rules would move; changes nothing')
    .addOption(several('-s, --source', 'in these sources'))
    .option(
      '-c, --config <file>',
      'try the rules of this config file (default: the rules of the server)',
    )
    .action(
      run<TestOptions>(async (io, options) =>
        (await import('../commands/fingerprints.ts')).testFingerprints(io, options),
      ),
    )
  changing(
    fingerprints
      .command('apply')
      .description('move open dead letters to the groups of the rules of the server'),
  )
    .addOption(
      several('-s, --source', 'in these sources (default: all sources that you may change)'),
    )
    .option('--reason <text>', 'reason for the audit log; required')
    .action(
      run<ApplyOptions>(async (io, options) =>
        (await import('../commands/fingerprints.ts')).applyFingerprints(io, options),
      ),
    )
}
