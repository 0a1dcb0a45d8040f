import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const AUTO = 'packages/catalog/src/replay/auto.ts'
const ALLOW = 'packages/server/src/access/allow.ts'
const IDEMPOTENCY = 'packages/server/src/http/idempotency.ts'
const LIFECYCLE = 'packages/catalog/src/replay/run/lifecycle.ts'
const RUN_STATEMENTS = 'packages/catalog/src/replay/run/statements.ts'
const REPLAYS = 'packages/server/src/operations/replays.ts'
const TOKENS = 'packages/server/src/identity/tokens.ts'

/** Replays without the approval of another person. */
export const APPROVAL: readonly Mutant[] = [
  weakened('approval', 'the planner approves the run', [
    LIFECYCLE,
    "rule === 'another_person' && actorOf(by) === locked.planned_by",
    'actorOf(by) === rule',
  ]),
  weakened('approval', 'a token counts as another person than its owner', [
    TOKENS,
    '    person: owner.id,\n    name:',
    '    person: `${owner.id} by ${row.name}`,\n    name:',
  ]),
  weakened(
    'approval',
    'a program can approve',
    [ALLOW, "  if (caller.isAgent && action === 'approve') return false\n", ''],
    [ALLOW, " && !(caller.isAgent && action === 'approve')", ''],
  ),
  weakened('approval', 'an approval applies to any plan', [
    LIFECYCLE,
    'if (locked.hash !== hash)',
    "if (hash === '')",
  ]),
  weakened('approval', 'a plan never expires', [
    LIFECYCLE,
    'if (locked.is_stale)',
    "if (hash === '')",
  ]),
  weakened('approval', 'a dead letter that changed after the plan is published', [
    RUN_STATEMENTS,
    " and d.status = 'open' and d.version = i.version\n",
    '\n',
  ]),
  weakened('approval', 'all callers share one Idempotency-Key', [
    IDEMPOTENCY,
    'JSON.stringify([person, credential ?? null])',
    "(person === credential ? person : 'everyone')",
  ]),
  weakened('approval', 'an approver approves a change that they cannot see', [
    REPLAYS,
    "      await guard.check({ ...audited, source }, source, needed, 'run')\n",
    "      await guard.check({ ...audited, source }, source, needed.slice(0, 0), 'run')\n",
  ]),
  weakened('approval', 'one person enables automatic replay', [
    AUTO,
    'requestedBy === undefined || requestedBy === by',
    'requestedBy === undefined',
  ]),
  weakened('approval', 'automatic replay does not wait', [
    AUTO,
    'const LEAST_QUIET_MS = 60_000\n',
    'const LEAST_QUIET_MS = 1\n',
  ]),
  weakened('approval', 'an approval lasts longer than any pause', [
    LIFECYCLE,
    'if ((locked.paused_for_ms ?? 0) > maxPauseMs) {',
    'if ((locked.paused_for_ms ?? 0) > maxPauseMs * 1_000) {',
  ]),
]
