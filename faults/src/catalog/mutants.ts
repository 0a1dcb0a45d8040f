import type { Mutant } from '../harness/mutant.ts'

const CLAIM = 'packages/catalog/src/replay/publish/statements.ts'
const CLAIM_ITEMS = 'packages/catalog/src/replay/publish/claim.ts'
const EPOCH = 'packages/catalog/src/replay/run/restore-detection.ts'
const INGEST = 'packages/catalog/src/ingest/ingest.ts'
const RUN_STATEMENTS = 'packages/catalog/src/replay/run/statements.ts'
const PLAN = 'packages/catalog/src/replay/plan/plan.ts'
const REFAIL = 'packages/catalog/src/replay/outcome/returned.ts'
const PUBLISH_CLAIM = 'packages/catalog/src/replay/publish/publish-claim.ts'
const SETTLE = 'packages/catalog/src/replay/outcome/confirm.ts'
const PUT_BACK = 'packages/catalog/src/put-back/put-back.ts'
const SET_ASIDE = 'packages/catalog/src/set-aside/store.ts'
const STORE = 'packages/catalog/src/ingest/store.ts'

export const MUTANTS: readonly Mutant[] = [
  [
    'create a second plan for a repeated request',
    'c01-plan',
    'copied twice',
    [PLAN, '  if (known !== undefined) return known\n', ''],
    [PLAN, 'name === undefined ? null : storable(name, NAME_MAX)', 'null'],
  ],
  [
    'never take over the claims of a dead publisher',
    'c03-claimed-postgres',
    'not drained',
    [
      CLAIM,
      `and lease_until < clock_timestamp()\n    order by place limit $2`,
      `and false\n    order by place limit $2`,
    ],
  ],
  [
    'mark as published before the broker confirms',
    'c04-sent-rabbitmq',
    'not drained',
    [PUBLISH_CLAIM, 'Promise.all(publishing).then(', 'Promise.resolve().then('],
    [PUBLISH_CLAIM, '() => void sent.push(place),', '() => undefined,'],
    [PUBLISH_CLAIM, '    publishing.push(\n', '    sent.push(place)\n    publishing.push(\n'],
  ],
  [
    'use another replay id for each publish',
    'c05-proven-rabbitmq',
    'unexpected',
    [
      PUBLISH_CLAIM,
      'source.publish({ deadLetter, replayId })',
      'source.publish({ deadLetter, replayId: `${replayId.slice(0, 32)}${Date.now() % 9000 + 1000}${replayId.slice(36)}` })',
    ],
  ],
  [
    'count known dead letters again',
    'c06-ingested-rabbitmq',
    'unexpected',
    [STORE, '[...added, ...again], left)', 'grouped, left)'],
  ],
  [
    'release before the commit',
    'c07-not-ingested',
    'lost',
    [
      INGEST,
      '    stored = await storeBatch(',
      '    await batch.release()\n    stored = await storeBatch(',
    ],
  ],
  [
    'release confirmations before they are stored',
    'c08-settle-rabbitmq',
    'not drained',
    [
      SETTLE,
      '    count = batch.confirmations.length\n',
      '    count = batch.confirmations.length\n    await batch.release()\n',
    ],
  ],
  [
    'mark without checking the lease token',
    'c09-stale-rabbitmq',
    'not fenced',
    [
      CLAIM,
      'where run_id = $1 and lease_token = $2 and',
      'where run_id = $1 and $2::bigint > 0 and',
    ],
  ],
  [
    'store a replay that failed again as a new dead letter',
    'c13-failed-again-rabbitmq',
    'copied twice',
    [REFAIL, 'if (ids.length + unnamed.length === 0) return', 'if (ids !== undefined) return'],
  ],
  [
    'continue with a restored catalog',
    'c15-restored',
    'not fenced',
    [
      EPOCH,
      'if (identity === now) return undefined',
      'if (identity !== `${now}?`) return undefined',
    ],
  ],
  [
    'approve dead letters that changed after the plan',
    'c17-edited',
    'not fenced',
    [RUN_STATEMENTS, ' and d.version = i.version', ''],
  ],
  [
    'wait for the rate of a slow run inside a worker',
    'slow-runs',
    'too slow',
    [
      CLAIM,
      'coalesce(greatest(r.due_at, q.next_at) <= clock_timestamp() + ${LOOK_AHEAD}, true)',
      'true',
    ],
    [CLAIM_ITEMS, 'Math.min(TURN_MAX, count)', 'Math.min(TURN_MAX, Math.max(1, count))'],
  ],
  [
    'publish claimed items although their run was stopped',
    'stop-runs',
    'not fenced',
    [
      CLAIM,
      `const LOOK_AHEAD = \`interval '250 milliseconds'`,
      `const LOOK_AHEAD = \`interval '20 seconds'`,
    ],
    [PUBLISH_CLAIM, 'const CHECKED_MS = 500', 'const CHECKED_MS = 60_000'],
  ],
  [
    'delete dead letters before the broker has stored them again',
    'put-back',
    'lost',
    [
      PUT_BACK,
      '      const stored = await putOrSplit(',
      '      await deleteStored(deps.pool, kind, letters.map(({ id }) => id))\n      const stored = await putOrSplit(',
    ],
  ],
  [
    'drop the headers of a message that is set aside',
    'set-aside',
    'changed',
    [
      SET_ASIDE,
      'const wire = encodeMessage(drained)',
      'const wire = encodeMessage({ ...drained, delivery: { ...drained.delivery, headers: {} } })',
    ],
  ],
  [
    'set a redelivered message without an id aside again',
    'set-aside',
    'copied twice',
    [INGEST, 'await withoutKnown(run, batch, source, rejected)', 'rejected'],
  ],
]
