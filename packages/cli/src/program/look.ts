import { FAILURE_CLASSES, GROUP_ORDERS, GROUP_STATES, STATUSES } from '@redrive/api/words'
import type { Command } from 'commander'
import type { ListAuditOptions } from '../commands/audit.ts'
import type { ChangeGroupOptions, ListGroupsOptions } from '../commands/groups.ts'
import type {
  ExportOptions,
  ListMessagesOptions,
  ShowMessageOptions,
} from '../commands/messages.ts'
import { addVerify } from './server.ts'
import { changing, oneOf, paged, type Run, searched, several, whole } from './run.ts'

/** Commands that look at what there is. */
export function addLooking(root: Command, run: Run): void {
  root
    .command('sources')
    .description('sources and what waits in them')
    .action(
      run(async (io, options) => (await import('../commands/sources.ts')).listSources(io, options)),
    )
  addGroups(root.command('groups').description('failure groups: alike failures of one source'), run)
  addMessages(root.command('messages').description('single dead letters'), run)
  root
    .command('whoami')
    .description('who you are to the server, and what you may do')
    .action(run(async (io, options) => (await import('../commands/token.ts')).whoami(io, options)))
}

function addGroups(groups: Command, run: Run): void {
  paged(groups.command('list').description('failure groups, newest failure first'))
    .addOption(several('-s, --source', 'of these sources'))
    .addOption(several('--state', 'in these states').choices(GROUP_STATES))
    .addOption(oneOf('--class <class>', 'of this failure class', FAILURE_CLASSES))
    .option('--handler <name>', 'of this handler')
    .option('--regressed', 'that were resolved, and failed again')
    .option('--open', 'with dead letters that nobody has dealt with')
    .option('--owner <person>', 'of this person')
    .option('--text <text>', "part of a group's title or first message")
    .addOption(oneOf('--order <order>', 'what comes first', GROUP_ORDERS))
    .addOption(
      oneOf('--trend <window>', 'how far back the trend goes', ['hour', 'day', 'none']).default(
        'hour',
      ),
    )
    .action(
      run<ListGroupsOptions>(async (io, options) =>
        (await import('../commands/groups.ts')).listGroups(io, options),
      ),
    )
  groups
    .command('show <group>')
    .description('one group: what it is, why it is one, the newest of it')
    .action(
      run(async (io, options, [group = '']) =>
        (await import('../commands/groups.ts')).showGroup(io, group, options),
      ),
    )
  changing(groups.command('change <group>').description('mute, resolve, reopen or assign a group'))
    .addOption(oneOf('--state <state>', 'its new state', GROUP_STATES))
    .option('--until <moment>', 'muted until then, or for so long: 2h')
    .option('--owner <person>', 'who deals with it')
    .option('--no-owner', 'nobody deals with it')
    .action(
      run<ChangeGroupOptions>(async (io, options, [group = '']) =>
        (await import('../commands/groups.ts')).changeGroup(io, group, withoutDefault(options)),
      ),
    )
  changing(
    groups.command('comment <group> <text>').description('say something about a group'),
  ).action(
    run(async (io, options, [group = '', text = '']) =>
      (await import('../commands/groups.ts')).commentGroup(io, group, text, options),
    ),
  )
}

/** `--no-owner` makes the library say `true` when neither flag is there. */
const withoutDefault = ({ owner, ...options }: ChangeGroupOptions): ChangeGroupOptions =>
  (owner as unknown) === true || owner === undefined ? options : { ...options, owner }

function addMessages(messages: Command, run: Run): void {
  paged(searched(messages.command('list').description('dead letters, newest failure first')))
    .addOption(several('--status', 'in these statuses').choices(STATUSES))
    .action(
      run<ListMessagesOptions>(async (io, options) =>
        (await import('../commands/messages.ts')).listMessages(io, options),
      ),
    )
  messages
    .command('show <message>')
    .description('one dead letter: attempts, headers, body')
    .option('--unmasked', 'body and headers as they came; the server writes down who looked')
    .action(
      run<ShowMessageOptions>(async (io, options, [id = '']) =>
        (await import('../commands/messages.ts')).showMessage(io, id, options),
      ),
    )
  searched(messages.command('export').description('all that fit, one JSON document in each line'))
    .addOption(several('--status', 'in these statuses').choices(STATUSES))
    .action(
      run<ExportOptions>(async (io, options) =>
        (await import('../commands/messages.ts')).exportMessages(io, options),
      ),
    )
}

/** The audit, for who may configure all sources or has the database. */
export function addAudit(root: Command, run: Run): void {
  const audit = root.command('audit').description('who did, saw and tried what')
  audit
    .command('list')
    .description('newest first')
    .option('-n, --limit <count>', 'most rows, up to 200', whole, 50)
    .option('--before <sequence>', 'go on before this entry', whole)
    .option('--person <person>', 'of this person')
    .option('--source <source>', 'about this source')
    .option('--what <operation>', 'this operation')
    .option('--subject <id>', 'about this message, group or run')
    .action(
      run<ListAuditOptions>(async (io, options) =>
        (await import('../commands/audit.ts')).listAudit(io, options),
      ),
    )
  addVerify(audit, run)
}
