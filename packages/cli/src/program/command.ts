import { FAILURE_CLASSES } from '@redrive/api/enums'
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

/** Adds the filters that select dead letters. */
export const filtered = (command: Command): Command =>
  command
    .addOption(several('-g, --group', 'in these groups; a prefix of the id is enough'))
    .addOption(several('-s, --source', 'in these sources'))
    .addOption(oneOf('--class <class>', 'with this failure class', FAILURE_CLASSES))
    .option('--handler <name>', 'failed in this handler')
    .option('--code <code>', 'failed with this error code')
    .option('--type <type>', 'with this event type')
    .option('--key <key>', 'with this key')
    .option('--after <time>', 'failed after this time, or within this duration, such as 2h')
    .option('--before <time>', 'failed before this time, or longer ago than this duration')
    .option('--text <text>', 'with this text in the failure message')
    .option('--quarantined', 'only quarantined dead letters')
    .addOption(several('--header', 'with this header: name=value'))
    .addOption(several('--body', 'with this value in the body: /pointer=value'))
    .addOption(several('--extracted', 'with this extracted value: name=value'))
