import type { Command } from 'commander'
import type { PeekOptions } from '../commands/peek.ts'
import type { SimulateOptions } from '../commands/simulate.ts'
import { EXIT } from '../exit.ts'
import { oneOf, type Run, whole } from './run.ts'

/** Commands that need no server. */
export function addLocal(root: Command, run: Run): void {
  root
    .command('peek <address> <queue>')
    .description('list, group and show what is in a queue, topic or outbox, without consuming it')
    .option('-n, --limit <count>', 'most messages to look at', whole, 500)
    .option('--show <number>', 'one of them in full', whole)
    .option('--even-so', 'look although the messages are near a limit of the broker')
    .action(
      run<PeekOptions>(async (io, options, [address = '', queue = '']) => {
        const [{ peek }, { openPlace }] = await Promise.all([
          import('../commands/peek.ts'),
          import('../composition.ts'),
        ])
        return peek(io, openPlace, { address, queue }, options)
      }),
    )
  addSimulate(root, run)
  root
    .command('mcp')
    .description('tools for operations agents, over stdin and stdout (Model Context Protocol)')
    .action(run(async (io, options) => (await import('../commands/mcp.ts')).serveMcp(io, options)))
  // Replaced when it is asked for: what it needs is not loaded for others.
  root
    .command('completion')
    .description('completion for zsh, bash, fish or powershell')
    .argument('<shell>')
    .action(run(async () => EXIT.ok))
}

function addSimulate(root: Command, run: Run): void {
  root
    .command('simulate [policy]')
    .description('play a policy against an outage, in virtual time')
    .option('--outage <time>', 'how long the dependency is out, 1s to 6h')
    .addOption(oneOf('--kind <kind>', 'what kind of outage', ['refuse', 'brown-out']))
    .option('--arrivals <rate>', 'messages that arrive each second', whole)
    .option('--capacity <rate>', 'what the dependency serves each second', whole)
    .option('--in-flight <count>', 'attempts in flight in the whole fleet', whole)
    .option('--seed <number>', 'the same seed plays the same', whole)
    .option('--compare', 'beside the policies of textbooks')
    .option('--svg <file>', 'write a drawing')
    .option('--html <file>', 'write a report')
    .action(
      run<SimulateOptions>(async (io, options, [policy]) =>
        (await import('../commands/simulate.ts')).simulate(
          io,
          policy === undefined ? options : { ...options, policy },
        ),
      ),
    )
}
