import { ACTIONS, ITEM_STATES, OVERRIDES, RUN_STATES } from '@redrive/api/words'
import { type Command, Option } from 'commander'
import type { EditOptions } from '../commands/edit.ts'
import type { ListRunsOptions, PlanOptions } from '../commands/replay.ts'
import type { DecideOptions, SettleOptions } from '../commands/settle.ts'
import type { ShowRunOptions } from '../commands/show-run.ts'
import type { CreateTokenOptions } from '../commands/token.ts'
import type { WaitOptions } from '../commands/watch.ts'
import { changing, decimal, filtered, oneOf, paged, type Run, several, whole } from './run.ts'

/** Commands that do something with dead letters. */
export function addActing(root: Command, run: Run): void {
  const replay = root.command('replay').description('plan, start and follow replays')
  addPlan(replay, run)
  addRuns(replay, run)
  addSettling(root, run)
  addTokens(
    root.command('token').description('tokens of yours, each for a part of what you may do'),
    run,
  )
}

function addPlan(replay: Command, run: Run): void {
  filtered(
    replay
      .command('plan')
      .description('freeze a selection and see what would be replayed; nothing goes out'),
  )
    .addOption(several('--id', 'these messages'))
    // Hidden: the command refuses it with a reason instead of "unknown option".
    .addOption(new Option('--text <text>').hideHelp())
    .option('--rate <rate>', 'how fast, such as 200/s or 12/min')
    .option('--ramp <stages>', 'sizes of the first stages, such as 1,5,50, or none')
    .option('--note <text>', 'why, for the others')
    .option('--refail-limit <share>', 'stops by itself when so many fail again: 0 to 1', decimal)
    .option('--confirm-within <time>', 'how long to wait for each outcome, such as 30s')
    .addOption(oneOf('--unproven <what>', 'when outcomes stay unknown', ['pause', 'go_on']))
    .option('--max-age <time>', 'nothing older than that, such as 24h')
    .option('--inbox-keep <time>', 'how long the inbox of the consumers remembers a key')
    .addOption(several('--override', 'let these through all the same').choices(OVERRIDES))
    .option('--patch <file>', 'a JSON Patch that is made of each body')
    .option('--force', 'as new messages: inboxes do not recognise them')
    .option('--dry-run', 'say what would be asked for, and do nothing')
    .action(
      run<PlanOptions>(async (io, options) =>
        (await import('../commands/replay.ts')).planReplay(io, options),
      ),
    )
}

function addRuns(replay: Command, run: Run): void {
  waiting(
    changing(
      replay
        .command('start <run>')
        .description('let a planned run go out, if the rule allows you to'),
    ),
  )
    .option('--wait', 'wait for the end')
    .action(
      run<WaitOptions>(async (io, options, [id = '']) =>
        (await import('../commands/approve.ts')).startReplay(io, id, options),
      ),
    )
  waiting(replay.command('watch <run>').description('follow a run; leaving it does not stop it'))
    .option('--wait', 'a run that pauses by itself is an end too')
    .action(
      run<WaitOptions>(async (io, options, [id = '']) =>
        (await import('../commands/watch.ts')).watchReplay(io, id, options),
      ),
    )
  const verbs = [
    ['pause', 'nothing more goes out until it is resumed', 'pauseReplay'],
    ['resume', 'go on after a pause', 'resumeReplay'],
    ['cancel', 'what is not out never goes out', 'cancelReplay'],
  ] as const
  for (const [name, description, operation] of verbs) {
    changing(replay.command(`${name} <run>`).description(description)).action(
      run(async (io, options, [id = '']) =>
        (await import('../commands/replay.ts')).changeRun(io, operation, id, options),
      ),
    )
  }
  paged(replay.command('list').description('runs, newest first'))
    .option('-s, --source <source>', 'of this source')
    .addOption(several('--state', 'in these states').choices(RUN_STATES))
    .action(
      run<ListRunsOptions>(async (io, options) =>
        (await import('../commands/replay.ts')).listRuns(io, options),
      ),
    )
  replay
    .command('show <run>')
    .description('one run and how far it is')
    .addOption(
      several('--items', 'what became of its messages, in these states').choices(ITEM_STATES),
    )
    .option('-n, --limit <count>', 'most items; default 50, and all of them with --json', whole)
    .action(
      run<ShowRunOptions>(async (io, options, [id = '']) =>
        (await import('../commands/show-run.ts')).showRun(io, id, options),
      ),
    )
  changing(
    replay
      .command('acknowledge-restore')
      .description('let replays go on after the catalog was restored from a backup'),
  ).action(
    run(async (io, options) =>
      (await import('../commands/restored.ts')).acknowledgeRestore(io, options),
    ),
  )
}

const waiting = (command: Command): Command =>
  command.option('--timeout <time>', 'leave after so long, with exit code 7')

function addSettling(root: Command, run: Run): void {
  changing(
    root
      .command('approve <run>')
      .description('look at what someone else planned, and let it go out'),
  ).action(
    run(async (io, options, [id = '']) =>
      (await import('../commands/approve.ts')).approveReplay(io, id, options),
    ),
  )
  changing(
    root.command('edit <message>').description('change a body in your editor and plan its replay'),
  )
    .option('--note <text>', 'why, for the others')
    .action(
      run<EditOptions>(async (io, options, [id = '']) =>
        (await import('../commands/edit.ts')).editMessage(io, id, options),
      ),
    )
  changing(
    root.command('discard [messages...]').description('nobody has to deal with these any more'),
  )
    .option('-g, --group <group>', 'all open ones of a group')
    .action(
      run<SettleOptions>(async (io, options, ids) =>
        (await import('../commands/settle.ts')).settle(io, 'discard', ids, options),
      ),
    )
  changing(root.command('restore [messages...]').description('undo a discard'))
    .option('-g, --group <group>', 'all discarded ones of a group')
    .action(
      run<SettleOptions>(async (io, options, ids) =>
        (await import('../commands/settle.ts')).settle(io, 'restore', ids, options),
      ),
    )
  changing(root.command('decide <messages...>').description('say what became of unknown outcomes'))
    .addOption(
      oneOf('--as <what>', 'they took effect, or may be replayed again', [
        'resolved',
        'open',
      ]).makeOptionMandatory(),
    )
    .action(
      run<DecideOptions>(async (io, options, ids) =>
        (await import('../commands/settle.ts')).decide(io, ids, options),
      ),
    )
}

function addTokens(token: Command, run: Run): void {
  changing(
    token.command('create <name>').description('a new token; its secret is shown once, on stdout'),
  )
    .addOption(several('--may', 'what it may do').choices(ACTIONS).makeOptionMandatory())
    .addOption(
      several('-s, --source', 'with which sources; * is any part of a name').makeOptionMandatory(),
    )
    .option('--days <count>', 'how long it is valid, up to 365', whole, 30)
    .option('--agent', 'for a program that decides by itself: it never approves')
    .option('--for <subject>', 'for that person, with the config of the server instead of its API')
    .option('-c, --config <file>', 'with --for: the config of the server')
    .action(
      run<CreateTokenOptions>(async (io, options, [name = '']) =>
        (await import('../commands/token.ts')).createToken(io, name, options),
      ),
    )
  token
    .command('list')
    .description('your tokens')
    .action(
      run(async (io, options) => (await import('../commands/token.ts')).listTokens(io, options)),
    )
  changing(token.command('revoke <token>').description('make a token worthless')).action(
    run(async (io, options, [id = '']) =>
      (await import('../commands/token.ts')).revokeToken(io, id, options),
    ),
  )
}
