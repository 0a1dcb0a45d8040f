import type { ReplayRun } from '@redrive/catalog'
import { brokenIf, type Violation } from '../../evidence/evidence.ts'
import { until } from '../../harness/wait.ts'
import type { Point } from '../options.ts'
import type { Stage } from '../stage.ts'
import { ITEMS, notDone, type Row, staged, timesOf } from './row.ts'

const unplanned: Row = {
  name: 'c01-plan',
  story:
    'an operator dies before or after the commit of a plan and repeats the request with the same name',
  isInSmoke: true,
  kind: 'postgres',
  async play(stage) {
    const times = timesOf(stage)
    const broken: Violation[] = []
    const points: readonly Point[] = ['plan not committed', 'plan committed']
    for (const [time, ids] of (await staged(stage, times)).entries()) {
      const name = `${stage.where.queue} ${time}`
      const request = await stage.request({ selection: { ids }, request: name })
      const point = points[time % points.length] as Point
      await stage.crash('operator', { point, nth: 1 }, { request })
      const { replays } = stage.catalog
      const plans = await Promise.all([1, 2, 3].map(() => replays.plan(request)))
      const runs = new Set(plans.map(({ id }) => id))
      broken.push(...brokenIf([runs.size !== 1, 'copied twice', `${runs.size} runs of ${name}`]))
      const { id, hash } = plans[0] as ReplayRun
      await replays.approve(id, { hash, by: 'bob' })
      broken.push(...notDone(await stage.finish(id), `run ${time + 1}`))
    }
    const { runs } = await stage.catalog.replays.runs({ source: stage.where.queue })
    return {
      statuses: { resolved: times * ITEMS },
      duplicates: 0,
      figures: [`${runs.length} runs after ${times} deaths`],
      broken: [
        ...broken,
        ...brokenIf([runs.length !== times, 'copied twice', `${runs.length} runs`]),
      ],
    }
  },
}

const approved: Row = {
  name: 'c02-approved',
  story: 'an operator dies before or after the commit of an approval',
  isInSmoke: true,
  kind: 'postgres',
  async play(stage) {
    const times = timesOf(stage)
    const broken: Violation[] = []
    const points: readonly Point[] = ['approval not committed', 'approval committed']
    for (const [time, ids] of (await staged(stage, times)).entries()) {
      const point = points[time % points.length] as Point
      const request = await stage.request({ selection: { ids } })
      const failpoint = { point, nth: 1 }
      const operator = stage.worker('operator', { request, approver: 'bob', failpoint })
      const { run } = await operator.waitFor('planned')
      operator.send('go')
      const end = await operator.gone
      const found = await stage.catalog.replays.run(run.id)
      const expected = point === 'approval committed' ? 'running' : 'planned'
      broken.push(
        ...brokenIf(
          [end !== 'SIGKILL', 'scenario', `the operator ended with ${end}`],
          [found?.state !== expected, 'in the wrong place', `${found?.state}, not ${expected}`],
        ),
      )
      if (found?.state === 'planned') {
        await stage.catalog.replays.approve(run.id, { hash: run.hash, by: 'bob' })
      }
      broken.push(...notDone(await stage.finish(run.id), `run ${time + 1}, ${point}`))
    }
    return {
      statuses: { resolved: times * ITEMS },
      duplicates: 0,
      figures: [`${times} deaths`],
      broken,
    }
  },
}

/** Starts an operator for each selection; all approve at the same time. */
async function together(
  stage: Stage,
  selections: readonly (readonly string[])[],
): Promise<readonly ReplayRun[]> {
  const operators = []
  for (const ids of selections) {
    const request = await stage.request({ selection: { ids } })
    operators.push(stage.worker('operator', { request, approver: 'bob' }))
  }
  await Promise.all(operators.map((operator) => operator.waitFor('planned')))
  for (const operator of operators) operator.send('go')
  const runs = await Promise.all(operators.map((operator) => operator.waitFor('approved')))
  return runs.map(({ run }) => run)
}

/** Checks that each dead letter belongs to one run, and that the other runs name this run. */
async function shared(stage: Stage, runs: readonly ReplayRun[], selected: number, count: number) {
  const queued = runs.reduce((sum, { counts }) => sum + counts.queued, 0)
  const skipped = runs.reduce((sum, run) => sum + (run.skipped['in_run'] ?? 0), 0)
  const linked = await stage.pool.query(
    `select from redrive_catalog.replay_item where run_id = any($1) and state = 'skipped' and other_run = any($1)`,
    [runs.map(({ id }) => id)],
  )
  return brokenIf(
    [queued !== count, 'copied twice', `${queued} queued, not ${count}`],
    [skipped !== selected - count, 'unexpected', `${skipped} skipped, not ${selected - count}`],
    [
      linked.rowCount !== skipped,
      'unexpected',
      `${linked.rowCount} of ${skipped} name the other run`,
    ],
  )
}

/** 100: two operators who select the same group. */
const MANY = 100

function racing(
  name: string,
  story: string,
  kind: Row['kind'],
  select: (ids: readonly string[]) => readonly (readonly string[])[],
): Row {
  return {
    name,
    story,
    kind,
    async play(stage) {
      const rounds = stage.world.scale === 'full' ? 5 : 1
      const broken: Violation[] = []
      for (let round = 0; round < rounds; round++) {
        await stage.fill(MANY)
        const before = new Set(await stage.deadLetters())
        await stage.ingest()
        const selections = select((await stage.deadLetters()).filter((id) => !before.has(id)))
        const runs = await together(stage, selections)
        broken.push(...(await shared(stage, runs, selections.flat().length, MANY)))
        const isDone = await stage.finish(...runs.map(({ id }) => id))
        broken.push(...notDone(isDone, `round ${round + 1}`))
      }
      const statuses = { resolved: rounds * MANY }
      return { statuses, duplicates: 0, figures: [`${rounds} rounds`], broken }
    },
  }
}

const operators = racing(
  'c10-operators',
  'two operators approve the same 100 at the same time',
  'postgres',
  (ids) => [ids, ids],
)
const overlapping = racing(
  'c11-overlap',
  'three overlapping runs are approved at the same time',
  'rabbitmq',
  (ids) => [ids.slice(0, 60), ids.slice(30, 90), [...ids.slice(60), ...ids.slice(0, 10)]],
)

const inboxExpired: Row = {
  name: 'c16-inbox-expired',
  story: 'the inbox keys have expired: a replay could take effect again',
  kind: 'postgres',
  async play(stage) {
    await stage.fill(ITEMS)
    await stage.ingest()
    const { replays } = stage.catalog
    const request = await stage.request({ inboxRetention: '1s' })
    const isRefused = async () => (await replays.plan(request)).skipped['inbox_expired'] === ITEMS
    await until('the dead letters are refused', isRefused, { withinMs: 10_000 })
    const plain = await replays.plan(request)
    const run = await replays.approve(plain.id, { hash: plain.hash, by: 'bob' })
    await stage.replayer.turn()
    const forced = await replays.plan({ ...request, change: { force: true } })
    return {
      statuses: { open: ITEMS },
      duplicates: 0,
      figures: [`${ITEMS} refused`],
      broken: brokenIf(
        [run.state !== 'done', 'unexpected', `the run is ${run.state}`],
        [forced.counts.planned !== ITEMS, 'unexpected', 'the override did not plan them'],
      ),
    }
  },
}

const EDIT = { edit: Buffer.from('{"edited":true}') }

const edited: Row = {
  name: 'c17-edited',
  story: 'dead letters are edited while they are replayed, and approved after they changed',
  kind: 'rabbitmq',
  async play(stage) {
    await stage.fill(ITEMS)
    await stage.ingest()
    const { catalog } = stage
    const { replays } = catalog
    const [first = '', last = ''] = await stage.deadLetters()
    const edit = async (id: string) =>
      replays.plan(await stage.request({ selection: { ids: [id] }, change: EDIT }))
    const approve = ({ id, hash }: ReplayRun) => replays.approve(id, { hash, by: 'bob' })
    // Planned while it was open; approved when it is no longer open.
    const before = await edit(first)
    // Open again, with another version than the planned one.
    const changed = await edit(last)
    await catalog.discard({ ids: [last] }, { by: 'cleo' })
    await catalog.restore({ ids: [last] }, { by: 'cleo' })
    const skips = [(await approve(changed)).skipped['changed']]
    const run = await stage.started()
    const failpoint = { point: 'begun', nth: 1, what: 'stop' } as const
    const publisher = stage.worker('publish', { failpoint })
    await publisher.stopped()
    const during = await edit(first)
    skips.push(during.skipped['in_run'], (await approve(before)).skipped['in_run'])
    publisher.signal('SIGCONT')
    const isDone = await stage.finish(run.id)
    return {
      statuses: { resolved: ITEMS },
      // Published twice if the publisher was stopped for longer than its lease.
      duplicates: ITEMS,
      figures: [`${skips.length} edits refused`],
      broken: [
        ...notDone(isDone, 'the run'),
        ...brokenIf([
          skips.some((count) => count !== 1),
          'not fenced',
          `an edit was accepted: ${skips.join(', ')}`,
        ]),
      ],
    }
  },
}

export const PLAN: readonly Row[] = [
  unplanned,
  approved,
  operators,
  overlapping,
  inboxExpired,
  edited,
]
