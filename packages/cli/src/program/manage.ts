import { ACTIONS, ITEM_STATES, OVERRIDES, RUN_STATES } from '@redrive/api/enums'
import type { Command } from 'commander'
import type { EditOptions } from '../commands/edit.ts'
import type { ListRunsOptions, PlanOptions } from '../commands/replay.ts'
import type { SettleOptions } from '../commands/discard.ts'
import type { SetOutcomeOptions } from '../commands/set-outcome.ts'
import type { ShowRunOptions } from '../commands/show-run.ts'
import type { CreateTokenOptions, ListTokensOptions } from '../commands/token.ts'
import type { WaitOptions } from '../commands/watch.ts'
import {
  changing,
  decimal,
  filtered,
  oneOf,
  paged,
  type BindAction,
  several,
  whole,
} from './command.ts'

/** Adds the commands that change dead letters, replays and tokens. */
export function addActing(root: Command, run: BindAction): void {
  const replay = root.command('replay').description('plan, start and follow replays')
  addPlan(replay, run)
  addRuns(replay, run)
  addSettling(root, run)
  addTokens(root.command('token').description('create, list and revoke API tokens'), run)
  addSessions(root.command('session').description('list and end sessions of users'), run)
}

function addPlan(replay: Command, run: BindAction): void {
  filtered(
    replay
      .command('plan')
      .description('store a fixed selection and preview its replay; publishes nothing'),
  )
    .addOption(several('--id', 'ids of the messages'))
    .option('--rate <rate>', 'publish at this rate, such as 200/s or 12/min (default 50/s)')
    .option('--canary <stages>', 'sizes of the canary stages, or none (default 1,5,50)')
    .option('--note <text>', 'reason, shown to the approver')
    .option(
      '--max-failure-ratio <share>',
      'pause when this share fails again (0–1, default 0.1)',
      decimal,
    )
    .option('--outcome-timeout <time>', 'time to wait for each outcome (1s–7d, default 5m)')
    .addOption(
      oneOf('--proof <what>', 'what shows the outcomes (default: chosen for the source)', [
        'confirmations',
        'returns',
      ]),
    )
    .addOption(
      oneOf('--on-unconfirmed <what>', 'action when replays are not confirmed (default pause)', [
        'pause',
        'continue',
      ]),
    )
    .option('--max-age <time>', 'skip dead letters older than this (default 24h)')
    .option('--inbox-retention <time>', 'how long the consumer inbox keeps keys (default 30d)')
    .addOption(
      several('--override', 'include dead letters that these gates skip').choices(OVERRIDES),
    )
    .option('--patch <file>', 'apply this JSON Patch to each body')
    .option('--force', 'assign new keys, so that consumers with an inbox handle the messages again')
    .option('--dry-run', 'print the request without sending it')
    .action(
      run<PlanOptions>(async (io, options, words) =>
        (await import('../commands/replay.ts')).planReplay(io, words, options),
      ),
    )
}

function addRuns(replay: Command, run: BindAction): void {
  waiting(
    changing(
      replay
        .command('start <run>')
        .description('start a planned run, if the approval rule allows it'),
    ),
  )
    .option('--wait', 'wait until the run ends or pauses')
    .action(
      run<WaitOptions>(async (io, options, [id = '']) =>
        (await import('../commands/approve.ts')).startReplay(io, id, options),
      ),
    )
  waiting(replay.command('watch <run>').description('follow a run; Ctrl-C does not stop the run'))
    .option('--wait', 'also stop following when the run pauses')
    .action(
      run<WaitOptions>(async (io, options, [id = '']) =>
        (await import('../commands/watch.ts')).watchReplay(io, id, options),
      ),
    )
  const verbs = [
    ['pause', 'pause a run; it publishes nothing until it is resumed', 'pauseReplay'],
    ['resume', 'resume a paused run', 'resumeReplay'],
    ['cancel', 'cancel a run; unpublished messages reopen', 'cancelReplay'],
  ] as const
  for (const [name, description, operation] of verbs) {
    changing(replay.command(`${name} <run>`).description(description)).action(
      run(async (io, options, [id = '']) =>
        (await import('../commands/replay.ts')).changeRun(io, operation, id, options),
      ),
    )
  }
  paged(replay.command('list').description('list replay runs, newest first'))
    .option('-s, --source <source>', 'in this source')
    .addOption(several('--state', 'in these states').choices(RUN_STATES))
    .action(
      run<ListRunsOptions>(async (io, options) =>
        (await import('../commands/replay.ts')).listRuns(io, options),
      ),
    )
  replay
    .command('show <run>')
    .description('show a run and its progress')
    .addOption(several('--items', 'list the items in these states').choices(ITEM_STATES))
    .option(
      '-n, --limit <count>',
      'maximum number of items (default 50; all with --json and --jsonl)',
      whole,
    )
    .action(
      run<ShowRunOptions>(async (io, options, [id = '']) =>
        (await import('../commands/show-run.ts')).showRun(io, id, options),
      ),
    )
  changing(
    replay
      .command('acknowledge-restore')
      .description('unfreeze replays after the catalog was restored from a backup'),
  ).action(
    run(async (io, options) =>
      (await import('../commands/restored.ts')).acknowledgeRestore(io, options),
    ),
  )
}

const waiting = (command: Command): Command =>
  command.option('--timeout <time>', 'stop waiting after this time (exit code 7)')

function addSettling(root: Command, run: BindAction): void {
  changing(
    root
      .command('approve <run>')
      .description('review and approve a run that another person planned'),
  ).action(
    run(async (io, options, [id = '']) =>
      (await import('../commands/approve.ts')).approveReplay(io, id, options),
    ),
  )
  changing(
    root.command('edit <message>').description('change a body in your editor and plan its replay'),
  )
    .option('--note <text>', 'reason, shown to the approver')
    .action(
      run<EditOptions>(async (io, options, [id = '']) =>
        (await import('../commands/edit.ts')).editMessage(io, id, options),
      ),
    )
  changing(filtered(root.command('discard').description('discard dead letters')))
    .addOption(several('--id', 'ids of the messages'))
    .action(
      run<SettleOptions>(async (io, options, words) =>
        (await import('../commands/discard.ts')).settle(io, 'discard', words, options),
      ),
    )
  changing(filtered(root.command('restore').description('restore discarded dead letters')))
    .addOption(several('--id', 'ids of the messages'))
    .action(
      run<SettleOptions>(async (io, options, words) =>
        (await import('../commands/discard.ts')).settle(io, 'restore', words, options),
      ),
    )
  changing(
    filtered(root.command('set-outcome').description('set the outcome of unconfirmed replays')),
  )
    .addOption(several('--id', 'ids of the messages'))
    .option('--run <run>', 'all messages of this run without a known outcome')
    .addOption(
      oneOf('--as <what>', 'resolved: it took effect; open: it may be replayed again', [
        'resolved',
        'open',
      ]).makeOptionMandatory(),
    )
    .action(
      run<SetOutcomeOptions>(async (io, options, words) =>
        (await import('../commands/set-outcome.ts')).setOutcome(io, words, options),
      ),
    )
}

function addSessions(session: Command, run: BindAction): void {
  session
    .command('list')
    .description('list the sessions of all users; for administrators')
    .action(
      run(async (io, options) =>
        (await import('../commands/session.ts')).listSessions(io, options),
      ),
    )
  changing(session.command('revoke <session>').description('end a session')).action(
    run(async (io, options, [id = '']) =>
      (await import('../commands/session.ts')).revokeSession(io, id, options),
    ),
  )
}

function addTokens(token: Command, run: BindAction): void {
  changing(
    token
      .command('create <name>')
      .description('create a token; its secret is printed once, on stdout'),
  )
    .addOption(
      several('--allow', 'permissions of the token').choices(ACTIONS).makeOptionMandatory(),
    )
    .addOption(
      several(
        '-s, --source',
        'allowed sources; * matches any part of a name',
      ).makeOptionMandatory(),
    )
    .option('--days <count>', 'days until the token expires (1–90)', whole, 30)
    .option('--agent', 'for an autonomous program; the token can never approve runs')
    .option(
      '--user <subject>',
      'create it for this person; needs --config and access to the database',
    )
    .option('-c, --config <file>', 'with --user: the server config file')
    .action(
      run<CreateTokenOptions>(async (io, options, [name = '']) =>
        (await import('../commands/token.ts')).createToken(io, name, options),
      ),
    )
  token
    .command('list')
    .description('list your tokens')
    .option('--everyone', 'tokens of all users; for administrators')
    .action(
      run<ListTokensOptions>(async (io, options) =>
        (await import('../commands/token.ts')).listTokens(io, options),
      ),
    )
  changing(
    token
      .command('revoke <token>')
      .description('revoke a token; administrators can revoke tokens of other users by full id'),
  ).action(
    run(async (io, options, [id = '']) =>
      (await import('../commands/token.ts')).revokeToken(io, id, options),
    ),
  )
}
