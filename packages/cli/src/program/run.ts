import { FAILURE_CLASSES } from '@redrive/api/words'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'

/** A command: all that it needs of the outside, what was asked for, and the words without a flag. */
export type Work<O> = (io: Io, options: O, args: readonly string[]) => Promise<ExitCode>

/** Makes an action of a command. */
export type Run = <O = CommonOptions>(work: Work<O>) => (this: Command) => Promise<void>

/** What every change has. */
export const changing = (command: Command): Command =>
  command
    .option('--dry-run', 'say what would be asked for, and do nothing')
    .option('-y, --yes', 'do not ask')

/** The same flag several times, or several values after it. */
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

/** A page: 50 fit on a screen or two. */
export const paged = (command: Command): Command =>
  command
    .option('-n, --limit <count>', 'most rows, up to 200', whole, 50)
    .option('--next <cursor>', 'go on where the page before ended')

/** Adds the filters that select dead letters. */
export const filtered = (command: Command): Command =>
  command
    .addOption(several('-g, --group', 'of these groups; the beginning of an id is enough'))
    .addOption(several('-s, --source', 'of these sources'))
    .addOption(oneOf('--class <class>', 'of this failure class', FAILURE_CLASSES))
    .option('--handler <name>', 'of this handler')
    .option('--code <code>', 'that failed with this code')
    .option('--type <type>', 'of this type of event')
    .option('--key <key>', 'with this key')
    .option('--after <moment>', 'that failed after a moment, or less than so long ago: 2h')
    .option('--before <moment>', 'that failed before a moment, or longer ago')
    .option('--quarantined', 'that are quarantined')
    .addOption(several('--header', 'with a header: name=value'))
    .addOption(several('--body', 'with a value in the body: /pointer=value'))
    .addOption(several('--extracted', 'with a value that was extracted: name=value'))

/** Adds the same filters and `--text`, which is precise enough to read and not to change anything. */
export const searched = (command: Command): Command =>
  filtered(command).option(
    '--text <text>',
    'part of a failure message; matches groups by their first message, unless --group, --key or --extracted is given',
  )
