import { SET_ASIDE_STATUSES } from '@redrive/api/enums'
import { type Command, Option } from 'commander'
import type {
  ChangeSetAsideOptions,
  ListSetAsideOptions,
  ShowSetAsideOptions,
} from '../commands/set-aside.ts'
import { type BindAction, changing, paged, several } from './command.ts'

/** Adds the commands for messages that could not be catalogued as dead letters. */
export function addSetAside(root: Command, run: BindAction): void {
  const group = root
    .command('set-aside')
    .description('inspect and replay messages that could not be catalogued')
  paged(group.command('list').description('list set-aside messages, newest first'))
    .addOption(several('-s, --source', 'in these sources'))
    .addOption(
      several('--status', 'with these statuses (default open, requested, replaying)').choices(
        SET_ASIDE_STATUSES,
      ),
    )
    .action(
      run<ListSetAsideOptions>(async (io, options) =>
        (await import('../commands/set-aside.ts')).listSetAside(io, options),
      ),
    )
  group
    .command('show <message>')
    .description('show a set-aside message and why it was set aside')
    .option('--payload', 'show its body and headers; requires --reason')
    .option('--reason <text>', 'why you need them; the server audits it')
    .action(
      run<ShowSetAsideOptions>(async (io, options, [id = '']) =>
        (await import('../commands/set-aside.ts')).showSetAside(io, id, options),
      ),
    )
  for (const [name, description] of CHANGES) {
    const command = changing(group.command(`${name} <messages...>`).description(description))
    const meaning = WITHOUT_HEADER[name]
    if (meaning !== undefined)
      command.addOption(
        new Option('--without-header <name>', `${meaning}; may be repeated`).argParser(
          (one: string, before: string[] | undefined): string[] => [...(before ?? []), one],
        ),
      )
    command.action(
      run<ChangeSetAsideOptions>(async (io, options, ids) =>
        (await import('../commands/set-aside.ts')).changeSetAside(io, name, ids, options),
      ),
    )
  }
}

/** What the option --without-header means. The other commands do not have it. */
const WITHOUT_HEADER: Readonly<Partial<Record<(typeof CHANGES)[number][0], string>>> = {
  replay: 'leave out this header, for example because it is too large',
  approve: 'approve a request that leaves out this header',
}

const CHANGES = [
  ['replay', 'request a replay to the origin; another person approves it'],
  ['approve', 'approve requested replays; they are published within seconds'],
  ['discard', 'discard messages without a replay'],
  ['reopen', 'undo a discard, or withdraw the request of a replay'],
] as const
