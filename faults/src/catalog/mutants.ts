import type { Mutant } from '../hunt.ts'

const CLAIM = 'packages/catalog/src/replay/claim.ts'
const EPOCH = 'packages/catalog/src/replay/epoch.ts'
const INGEST = 'packages/catalog/src/ingest/ingest.ts'
const LIFECYCLE = 'packages/catalog/src/replay/lifecycle.ts'
const PLAN = 'packages/catalog/src/replay/plan.ts'
const REFAIL = 'packages/catalog/src/replay/refail.ts'
const REPLAYER = 'packages/catalog/src/replay/replayer.ts'
const SETTLE = 'packages/catalog/src/replay/settle.ts'
const STORE = 'packages/catalog/src/ingest/store.ts'

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'plan again what was asked for by the same name',
    edits: [
      {
        file: PLAN,
        find: '  if (known !== undefined) return known\n',
        replace: '',
      },
      {
        file: PLAN,
        find: 'name === undefined ? null : storable(name, NAME_MAX)',
        replace: 'null',
      },
    ],
    scenario: 'c01-plan',
    breaks: 'copied twice',
  },
  {
    name: 'leave what a dead publisher had claimed',
    edits: [
      {
        file: CLAIM,
        find: `and lease_until < clock_timestamp()\n    order by place limit $2`,
        replace: `and false\n    order by place limit $2`,
      },
    ],
    scenario: 'c03-claimed-postgres',
    breaks: 'not drained',
  },
  {
    name: 'mark published before the broker has proven it',
    edits: [
      {
        file: REPLAYER,
        find: 'Promise.all(publishing).then(',
        replace: 'Promise.resolve().then(',
      },
      { file: REPLAYER, find: '() => void sent.push(place),', replace: '() => undefined,' },
      {
        file: REPLAYER,
        find: '    publishing.push(\n',
        replace: '    sent.push(place)\n    publishing.push(\n',
      },
    ],
    scenario: 'c04-sent-rabbitmq',
    breaks: 'not drained',
  },
  {
    name: 'another replay id for each publish',
    edits: [
      {
        file: REPLAYER,
        find: 'source.publish({ deadLetter, replayId })',
        replace:
          'source.publish({ deadLetter, replayId: `${replayId.slice(0, -4)}${Date.now() % 9000 + 1000}` })',
      },
    ],
    scenario: 'c05-proven-rabbitmq',
    breaks: 'unexpected',
  },
  {
    name: 'count dead letters again that are known',
    edits: [{ file: STORE, find: '[...added, ...again], left)', replace: 'grouped, left)' }],
    scenario: 'c06-ingested-rabbitmq',
    breaks: 'unexpected',
  },
  {
    name: 'release before the commit',
    edits: [
      {
        file: INGEST,
        find: '    stored = await storeBatch(',
        replace: '    await batch.release()\n    stored = await storeBatch(',
      },
    ],
    scenario: 'c07-not-ingested',
    breaks: 'lost',
  },
  {
    name: 'forget confirmations before they are written down',
    edits: [
      {
        file: SETTLE,
        find: '    count = batch.confirmations.length\n',
        replace: '    count = batch.confirmations.length\n    await batch.release()\n',
      },
    ],
    scenario: 'c08-settle-rabbitmq',
    breaks: 'not drained',
  },
  {
    name: 'mark without looking at the token',
    edits: [
      {
        file: CLAIM,
        find: `lease_token = $2 and place = any($3::integer[]) and state = 'publishing'`,
        replace: `$2::bigint > 0 and place = any($3::integer[]) and state = 'publishing'`,
      },
    ],
    scenario: 'c09-stale-rabbitmq',
    breaks: 'not fenced',
  },
  {
    name: 'take a replay that failed again for a new dead letter',
    edits: [
      {
        file: REFAIL,
        find: 'if (ids.length === 0) return',
        replace: 'if (ids !== undefined) return',
      },
    ],
    scenario: 'c13-refailed-rabbitmq',
    breaks: 'copied twice',
  },
  {
    name: 'let a catalog go on that was restored',
    edits: [
      {
        file: EPOCH,
        find: 'if (identity === now) return undefined',
        replace: 'if (identity !== `${now}?`) return undefined',
      },
    ],
    scenario: 'c15-restored',
    breaks: 'not fenced',
  },
  {
    name: 'approve what is not as it was planned',
    edits: [{ file: LIFECYCLE, find: ' and d.version = i.version', replace: '' }],
    scenario: 'c17-edited',
    breaks: 'not fenced',
  },
]
