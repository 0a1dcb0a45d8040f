import { FILTER_FIELDS } from '@redrive/api/filter'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'

/** A command. It receives its environment, its options and its positional arguments. */
export type CommandFunction<O> = (io: Io, options: O, args: readonly string[]) => Promise<ExitCode>

/** Turns a command into an action of commander. */
export type BindAction = <O = CommonOptions>(
  command: CommandFunction<O>,
) => (this: Command) => Promise<void>

/** Adds the options of every command that changes something. */
export const changing = (command: Command): Command =>
  command
    .option('--dry-run', 'print the change without making it')
    .option('-y, --yes', 'skip the confirmation prompt')

/** Returns an option that accepts several values and may be repeated. */
export const several = (flags: string, description: string): Option =>
  new Option(`${flags} <values...>`, description)

export const oneOf = (flags: string, description: string, choices: readonly string[]): Option =>
  new Option(flags, description).choices(choices)

export function whole(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number.')
}

export function decimal(text: string): number {
  if (/^\d{1,15}(\.\d+)?$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a number.')
}

/** Adds the options of a page. The default of 50 rows fits on one or two screens. */
export const paged = (command: Command): Command =>
  command
    .option('-n, --limit <count>', 'maximum number of rows (1–200)', whole, 50)
    .option('--cursor <cursor>', 'continue after the previous page')

/** Adds the words of a filter, and the fields to the help. */
export const filtered = (command: Command): Command =>
  command
    .argument('[filter...]', 'words such as source:orders after:2h "eu bank"')
    .addHelpText('after', () => `\n${filterHelp()}`)

/** Returns the fields of the filter language as a table. */
function filterHelp(): string {
  const width = Math.max(...FILTER_FIELDS.map(({ example }) => shortExample(example).length))
  const rows = FILTER_FIELDS.map(
    ({ example, description }) => `  ${shortExample(example).padEnd(width)}  ${description}`,
  )
  return `Filter (a dead letter must match all words; a word without a field is a part of the failure message):\n${rows.join('\n')}`
}

/** The command line accepts the start of an id. */
const shortExample = (example: string) => example.replace(/^(group:.{4}).*/, '$1')

/** Adds the files of a connection with TLS. */
export const certified = (command: Command): Command =>
  command
    .option('--ca <file>', 'certificates of private authorities, PEM (default: those of Node.js)')
    .option('--cert <file>', 'client certificate, PEM (default: none)')
    .option('--key <file>', 'private key of the client certificate, PEM (default: none)')
