import { FAILURE_CLASSES, GROUP_ORDERS, GROUP_STATES } from '@redrive/api/enums'
import type { Command } from 'commander'
import type { ListAuditOptions } from '../commands/audit.ts'
import type { ListExpiredOptions } from '../commands/expired.ts'
import type { ChangeGroupOptions, ListGroupsOptions } from '../commands/groups.ts'
import type { RegroupOptions, SplitOptions } from '../commands/regroup.ts'
import type { ListSourcesOptions } from '../commands/sources.ts'
import type { ListMessagesOptions, ShowMessageOptions } from '../commands/messages.ts'
import { addVerify } from './server.ts'
import { changing, oneOf, paged, type BindAction, filtered, several, whole } from './command.ts'

/** Adds the commands that only read. */
export function addLooking(root: Command, run: BindAction): void {
  const sources = root
    .command('sources')
    .description('list sources with their open dead letters')
    .option('--wide', 'show all columns')
    .action(
      run<ListSourcesOptions>(async (io, options) =>
        (await import('../commands/sources.ts')).listSources(io, options),
      ),
    )
  sources
    .command('show <source>')
    .description('show one source: its state at the broker and its counts')
    .action(
      run(async (io, options, [name = '']) =>
        (await import('../commands/sources.ts')).showSource(io, name, options),
      ),
    )
  paged(sources.command('expired').description('count the dead letters that retention has deleted'))
    .addOption(several('-s, --source', 'in these sources'))
    .action(
      run<ListExpiredOptions>(async (io, options) =>
        (await import('../commands/expired.ts')).listExpired(io, options),
      ),
    )
  addGroups(
    root.command('groups').description('inspect failure groups: similar failures of one source'),
    run,
  )
  addMessages(root.command('messages').description('inspect single dead letters'), run)
  root
    .command('whoami')
    .description('show the current user and permissions')
    .action(run(async (io, options) => (await import('../commands/token.ts')).whoami(io, options)))
}

function addGroups(groups: Command, run: BindAction): void {
  paged(groups.command('list').description('list failure groups, latest failure first'))
    .addOption(several('-s, --source', 'in these sources'))
    .addOption(several('--state', 'in these states').choices(GROUP_STATES))
    .addOption(oneOf('--class <class>', 'with this failure class', FAILURE_CLASSES))
    .option('--handler <name>', 'failed in this handler')
    .option('--regressed', 'only groups that failed again after they were resolved')
    .option('--open', 'only groups with open dead letters')
    .option('--owner <person>', 'assigned to this person')
    .option('--text <text>', "part of a group's title or first message")
    .addOption(oneOf('--order <order>', 'sort order', GROUP_ORDERS))
    .addOption(
      oneOf('--trend <window>', 'time range of the trend', ['hour', 'day', 'none']).default('hour'),
    )
    .action(
      run<ListGroupsOptions>(async (io, options) =>
        (await import('../commands/groups.ts')).listGroups(io, options),
      ),
    )
  groups
    .command('show <group>')
    .description('show a group, why its failures belong together, and its newest dead letters')
    .action(
      run(async (io, options, [group = '']) =>
        (await import('../commands/groups.ts')).showGroup(io, group, options),
      ),
    )
  changing(groups.command('change <group>').description('mute, resolve, reopen or assign a group'))
    .addOption(oneOf('--state <state>', 'new state', GROUP_STATES))
    .option('--until <time>', 'mute until this time, or for this duration, such as 2h')
    .option('--owner <person>', 'assign the group to this person')
    .option('--no-owner', 'remove the owner')
    .action(
      run<ChangeGroupOptions>(async (io, options, [group = '']) =>
        (await import('../commands/groups.ts')).changeGroup(io, group, withoutDefault(options)),
      ),
    )
  changing(
    groups
      .command('merge <target> <groups...>')
      .description('merge groups of one source into the target; later failures join it, too'),
  )
    .option('--reason <text>', 'why they belong together; required')
    .action(
      run<RegroupOptions>(async (io, options, words) =>
        (await import('../commands/regroup.ts')).mergeGroups(io, words, options),
      ),
    )
  changing(groups.command('unmerge <group>').description('separate a merged group again'))
    .option('--reason <text>', 'why they do not belong together; required')
    .action(
      run<RegroupOptions>(async (io, options, [group = '']) =>
        (await import('../commands/regroup.ts')).unmergeGroup(io, group, options),
      ),
    )
  changing(
    groups
      .command('split <group>')
      .description('split matching messages off into a new group; later failures follow'),
  )
    .option('--filter <filter>', 'words with class, code, type, handler, header or text; required')
    .option('--name <name>', 'name of the new group; required')
    .option('--reason <text>', 'why they are a different failure; required')
    .action(
      run<SplitOptions>(async (io, options, [group = '']) =>
        (await import('../commands/regroup.ts')).splitGroup(io, group, options),
      ),
    )
  changing(groups.command('comment <group> <text>').description('add a comment to a group')).action(
    run(async (io, options, [group = '', text = '']) =>
      (await import('../commands/groups.ts')).commentGroup(io, group, text, options),
    ),
  )
}

/** Removes the `true` that commander sets when neither `--owner` nor `--no-owner` is given. */
const withoutDefault = ({ owner, ...options }: ChangeGroupOptions): ChangeGroupOptions =>
  (owner as unknown) === true || owner === undefined ? options : { ...options, owner }

function addMessages(messages: Command, run: BindAction): void {
  paged(
    filtered(messages.command('list').description('list dead letters, latest failure first')),
  ).action(
    run<ListMessagesOptions>(async (io, options, words) =>
      (await import('../commands/messages.ts')).listMessages(io, words, options),
    ),
  )
  messages
    .command('show <message>')
    .description('show a dead letter with its attempts, headers and body')
    .option('--unmasked', 'show the original body and headers; requires --reason')
    .option('--reason <text>', 'why you need the original; the server audits it')
    .option('--cycle <number>', 'with --unmasked: the body of this cycle, before an edit', whole)
    .action(
      run<ShowMessageOptions>(async (io, options, [id = '']) =>
        (await import('../commands/messages.ts')).showMessage(io, id, options),
      ),
    )
  filtered(
    messages.command('export').description('export matching dead letters as JSON Lines'),
  ).action(
    run(async (io, options, words) =>
      (await import('../commands/messages.ts')).exportMessages(io, words, options),
    ),
  )
}

/** Adds the audit commands. They require permission to configure all sources, or the database. */
export function addAudit(root: Command, run: BindAction): void {
  const audit = root.command('audit').description('show and verify the audit log')
  audit
    .command('list')
    .description('list audit entries, newest first')
    .option('-n, --limit <count>', 'maximum number of rows (1–200)', whole, 50)
    .option('--before <sequence>', 'continue before this entry', whole)
    .option('--person <person>', 'by this person')
    .option('--source <source>', 'for this source')
    .option('--operation <operation>', 'for this operation')
    .option('--subject <id>', 'for this message, group or run')
    .action(
      run<ListAuditOptions>(async (io, options) =>
        (await import('../commands/audit.ts')).listAudit(io, options),
      ),
    )
  addVerify(audit, run)
}
