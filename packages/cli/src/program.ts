import { Command, CommanderError } from 'commander'
import { EXIT, type ExitCode } from './exit.ts'
import { missingExtra, runWithExtra } from './extras.ts'
import { fail } from './failure.ts'
import type { CommonOptions, Io } from './io.ts'
import { addActing } from './program/manage.ts'
import { addLocal } from './program/local.ts'
import { addAudit, addLooking } from './program/inspect.ts'
import { addSetAside } from './program/set-aside.ts'
import { addFingerprints } from './program/fingerprints.ts'
import type { BindAction } from './program/command.ts'
import { addServer } from './program/server.ts'
import { VERSION } from './version.ts'

interface GlobalOptions extends CommonOptions {
  readonly verbose?: boolean
}

/** Runs the command in `args` and returns the exit code. `args` are without `node` and the script. */
export async function runProgram(io: Io, args: readonly string[]): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.ok
  let isEndless = false
  const run: BindAction = (command) =>
    async function (this: Command) {
      isEndless = ENDLESS.has(this.name())
      exitCode = await command(io, this.optsWithGlobals() as never, this.args)
    }
  const root = programOf(io, run)
  try {
    if (args[0] === 'completion' || args[0] === 'complete') await addCompletion(root)
    await root.parseAsync(args, { from: 'user' })
    return io.signal.aborted && exitCode === EXIT.ok && !isEndless ? EXIT.interrupted : exitCode
  } catch (error) {
    // Commander also throws for --help and --version, with exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const isVerbose = root.opts<GlobalOptions>().verbose === true
    const extra = missingExtra(error)
    if (extra === undefined) return fail(io, error, isVerbose)
    try {
      return await runWithExtra(io, extra, args)
    } catch (reason) {
      return fail(io, reason, isVerbose)
    }
  }
}

/** Commands that run until a signal stops them. For them, a signal is a normal end. */
const ENDLESS: ReadonlySet<string> = new Set(['serve', 'dev', 'mcp'])

/** Builds the program with all commands. */
export function programOf(io: Io, run: BindAction): Command {
  const root = new Command('redrive')
  // Set first, because commands that are added later inherit both.
  root.exitOverride().configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: (text) => io.stderr.write(text),
    getOutHelpWidth: () => io.stdout.columns,
    getErrHelpWidth: () => io.stderr.columns,
    getOutHasColors: () => io.stdout.hasColor,
    getErrHasColors: () => io.stderr.hasColor,
  })
  root
    .description('Inspect and replay dead letters.')
    .version(VERSION, '-V, --version')
    .option('--json', 'print one JSON document on stdout')
    .option('--jsonl', 'print one JSON document per line on stdout')
    .option('--profile <name>', 'use this server profile')
    .option('--no-color', 'disable colours, as NO_COLOR does')
    .option('-v, --verbose', 'print stack traces')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Add --help to list commands and options.')
    .addHelpText('after', EPILOGUE)
  addLooking(root, run)
  addActing(root, run)
  addSetAside(root, run)
  addFingerprints(root, run)
  addAudit(root, run)
  addLocal(root, run)
  addServer(root, run)
  return root
}

/** Adds the completion script and the command that the shell calls while the user types. */
async function addCompletion(root: Command): Promise<void> {
  const placeholder = root.commands.findIndex((command) => command.name() === 'completion')
  ;(root.commands as Command[]).splice(placeholder, 1)
  const { default: tab } = await import('@bomb.sh/tab/commander')
  tab(root, { completionCommandName: 'completion' })
}

const EPILOGUE = `
Set the server with REDRIVE_URL and REDRIVE_TOKEN (or REDRIVE_TOKEN_FILE), or --profile.
Exit codes: 0 success, 1 failure, 2 usage error, 3 not found, 4 not allowed,
5 conflict, 6 partial success, 7 stopped waiting (the run continues),
8 success with a warning, 130 Ctrl-C.`
