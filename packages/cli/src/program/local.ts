import type { Command } from 'commander'
import type { PeekOptions } from '../commands/peek.ts'
import type { SimulateOptions } from '../commands/simulate.ts'
import type { SizeOptions } from '../commands/size.ts'
import { EXIT } from '../exit.ts'
import type { CertificateOptions } from '../server/certificates.ts'
import { type BindAction, certified, decimal, oneOf, whole } from './command.ts'

/** Adds the commands that need no server. */
export function addLocal(root: Command, run: BindAction): void {
  certified(
    root
      .command('peek <address> <queue>')
      .description(
        'list and group the messages of a queue, topic or outbox without consuming them',
      ),
  )
    .option('-n, --limit <count>', 'maximum number of messages', whole, 500)
    .option('--show <number>', 'show this message in full', whole)
    .option(
      '--ignore-delivery-limit',
      "peek even near the queue's delivery limit, or if the order may change",
    )
    .action(
      run<PeekOptions & CertificateOptions>(async (io, options, [address = '', queue = '']) => {
        const [{ peek }, { openPeekTarget }, { filledAddress }, { certificatesOf }] =
          await Promise.all([
            import('../commands/peek.ts'),
            import('../composition.ts'),
            import('../server/address.ts'),
            import('../server/certificates.ts'),
          ])
        const target = { address: await filledAddress(io, address), queue }
        const tls = certificatesOf(io, options, [target.address])
        return peek(io, (at, name) => openPeekTarget(at, name, tls), target, options)
      }),
    )
  addSimulate(root, run)
  addSize(root, run)
  root
    .command('mcp')
    .description('serve tools for agents over stdin and stdout (Model Context Protocol)')
    .action(run(async (io, options) => (await import('../commands/mcp.ts')).serveMcp(io, options)))
  // A placeholder for the help. `addCompletion` replaces it, so that other commands start faster.
  root
    .command('completion')
    .description('print the completion script for zsh, bash, fish or powershell')
    .argument('<shell>')
    .action(run(async () => EXIT.ok))
}

function addSimulate(root: Command, run: BindAction): void {
  root
    .command('simulate [policy]')
    .description('simulate a policy during an outage, in virtual time')
    .option('--outage <time>', 'length of the outage (1s–6h, default 5m)')
    .addOption(oneOf('--kind <kind>', 'kind of outage (default refuse)', ['refuse', 'brown-out']))
    .option('--arrivals <rate>', 'messages that arrive per second (1–1000, default 100)', whole)
    .option(
      '--capacity <rate>',
      'messages that the dependency serves per second (default 1.5 × arrivals)',
      whole,
    )
    .option(
      '--in-flight <count>',
      'attempts in flight in all processes (1–2000, default 100)',
      whole,
    )
    .option('--seed <number>', 'random seed; equal seeds give equal results (default 1)', whole)
    .option('--compare', 'compare with common textbook policies')
    .option('--svg <file>', 'write a chart to this SVG file')
    .option('--html <file>', 'write a report to this HTML file')
    .action(
      run<SimulateOptions>(async (io, options, [policy]) =>
        (await import('../commands/simulate.ts')).simulate(
          io,
          policy === undefined ? options : { ...options, policy },
        ),
      ),
    )
}

function addSize(root: Command, run: BindAction): void {
  root
    .command('size')
    .description('estimate rows, disk and connections of the server')
    .option('--messages-per-day <count>', 'messages of all sources (default 10,000,000)', whole)
    .option('--failures <share>', 'share that become dead letters (0–1, default 0.001)', decimal)
    .option('--retention <time>', 'how long dead letters are kept (default 14d)')
    .option('--body-bytes <count>', 'average size of a body (default 1,000)', whole)
    .option('--sources <count>', 'sources (default 10)', whole)
    .option('--processes <count>', 'processes of the server (default 2)', whole)
    .action(
      run<SizeOptions>(async (io, options) =>
        (await import('../commands/size.ts')).size(io, options),
      ),
    )
}
