import { Command, CommanderError } from 'commander'
import { EXIT, type ExitCode } from './exit.ts'
import { fail } from './failure.ts'
import type { CommonOptions, Io } from './io.ts'
import { addActing } from './program/act.ts'
import { addLocal } from './program/local.ts'
import { addAudit, addLooking } from './program/look.ts'
import type { Run } from './program/run.ts'
import { addServer } from './program/server.ts'

interface GlobalOptions extends CommonOptions {
  readonly verbose?: boolean
}

/** Runs what was typed and answers the exit code. `args` are without `node` and the script. */
export async function runProgram(io: Io, args: readonly string[]): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.ok
  let isEndless = false
  const run: Run = (work) =>
    async function (this: Command) {
      isEndless = ENDLESS.has(this.name())
      exitCode = await work(io, this.optsWithGlobals() as never, this.args)
    }
  const root = programOf(io, run)
  try {
    if (args[0] === 'completion' || args[0] === 'complete') await addCompletion(root)
    await root.parseAsync(args, { from: 'user' })
    return io.signal.aborted && exitCode === EXIT.ok && !isEndless ? EXIT.interrupted : exitCode
  } catch (error) {
    // Help and version end in the same way as a mistake, but with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    return fail(io, error, root.opts<GlobalOptions>().verbose === true)
  }
}

/** These go on until they are asked to end: for them that is no interruption. */
const ENDLESS: ReadonlySet<string> = new Set(['serve', 'mcp'])

/** Every command. */
function programOf(io: Io, run: Run): Command {
  const root = new Command('redrive')
  // First: commands that are made later take both over.
  root.exitOverride().configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: (text) => io.stderr.write(text),
    getOutHelpWidth: () => io.stdout.columns,
    getErrHelpWidth: () => io.stderr.columns,
    getOutHasColors: () => io.stdout.hasColor,
    getErrHasColors: () => io.stderr.hasColor,
  })
  root
    .description('Dead letters: look at them, and get them back to where they belong.')
    .version(VERSION, '-V, --version')
    .option('--json', 'one JSON document on stdout')
    .option('--jsonl', 'one JSON document in each line on stdout')
    .option('--profile <name>', 'a server of your profiles')
    .option('--no-color', 'no colours; NO_COLOR does the same')
    .option('-v, --verbose', 'where an error came from')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Add --help to see what there is.')
    .addHelpText('after', EPILOGUE)
  addLooking(root, run)
  addActing(root, run)
  addAudit(root, run)
  addLocal(root, run)
  addServer(root, run)
  return root
}

/** Completion for a shell, and what it asks while someone types. */
async function addCompletion(root: Command): Promise<void> {
  const placeholder = root.commands.findIndex((command) => command.name() === 'completion')
  ;(root.commands as Command[]).splice(placeholder, 1)
  const { default: tab } = await import('@bomb.sh/tab/commander')
  tab(root, { completionCommandName: 'completion' })
}

const VERSION = '0.1.0'

const EPILOGUE = `
The server: REDRIVE_URL and REDRIVE_TOKEN (or REDRIVE_TOKEN_FILE), or --profile.
Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 conflict,
6 some and not all, 7 timeout while waiting, 130 Ctrl-C.`
