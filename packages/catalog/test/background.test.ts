import { MemoryBroker, memory, memorySource, send } from '@redrive/memory'
import { migrate as migrateOutbox } from '@redrive/postgres'
import { consume } from '@redrive/runtime'
import { memoryInbox, until } from '@redrive/testing'
import { afterEach, describe, expect, test } from 'vitest'
import type { Duration } from '@redrive/core'
import {
  type Alert,
  type AutoReplayRun,
  type BackgroundOptions,
  type BackgroundSource,
  catalog,
  startBackground,
  type JobFailure,
  type Replays,
} from '../src/index.ts'
import { dead, migrated, poolOn, refusal, rows } from './rig.ts'
import { SIGNATURE, staged, Wire } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_background')
await migrateOutbox(pool)

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()))
})

async function working(
  sources: readonly BackgroundSource[],
  said: Pick<BackgroundOptions, 'onAlerts' | 'onJobFailure'> = {},
) {
  const own = poolOn(pool.options.connectionString ?? '', 16)
  const made = catalog({ pool: own })
  const starting = startBackground({ catalog: made, pool: own, sources, ...said })
  stops.push(async () => {
    await starting.then(
      (one) => one.stop(),
      () => undefined,
    )
    await own.end()
  })
  return { catalog: made, background: await starting }
}

describe('the background', () => {
  test('handles messages from failure to confirmation, with two processes', async () => {
    const broker = new MemoryBroker()
    const where = { broker, queue: 'orders' }
    const effects: string[] = []
    let isFixed = false
    const inbox = memoryInbox()
    const consumer = await consume(
      memory(where),
      (message, { tx }) => {
        if (!isFixed) throw new Error('price is missing')
        tx.onCommit(() => void effects.push(message.id))
      },
      { inbox, retry: { attempts: 1 }, poison: 'off', flood: 'off', breaker: 'off', outage: 'off' },
    )
    stops.push(() => consumer.stop())
    const source = { source: memorySource(where) }
    const { catalog: made } = await working([source])
    await working([source])
    const ids = Array.from({ length: 120 }, (_, order) => send(broker, 'orders', { order }))
    const group = await until(
      '120 open dead letters',
      async () => (await made.groups({ sources: ['orders'] })).groups[0],
      { accept: (found) => found.openCount === 120 },
    )
    isFixed = true
    const plan = await made.replays.plan({
      selection: { group: group.id },
      by: 'ada',
      ratePerSecond: 500,
    })
    await made.replays.approve(plan.id, { hash: plan.hash, by: 'bob' })
    const run = await until('the end of the run', () => made.replays.run(plan.id), {
      accept: (seen) => seen.state !== 'running',
    })
    expect(run).toMatchObject({ state: 'done', counts: { resolved: 120 } })
    expect(effects.toSorted()).toEqual(ids.toSorted())
  })

  test('reports alerts', async () => {
    const reported: Alert[] = []
    const wire = new Wire(
      'alerting',
      Array.from({ length: 101 }, () => dead({ signature: SIGNATURE })),
    )
    const made = catalog({ pool })
    await made.ingest(wire)
    await working([{ source: wire }], {
      onAlerts: async (alerts) => void reported.push(...alerts),
    })
    const isIt = (one: Alert) => one.kind === 'depth' && one.source === 'alerting'
    await until('the alert', async () => reported, { accept: (alerts) => alerts.some(isIt) })
    expect(reported.find(isIt)).toEqual({ kind: 'depth', source: 'alerting', depth: 101 })
  })

  test('continues with other sources when one fails, and counts and reports the failure', async () => {
    const wire = new Wire('broken')
    const error = new TypeError('this source is not set up')
    wire.drain = () => Promise.reject(error)
    const healthy = new Wire('healthy', [dead({ signature: SIGNATURE })])
    const failures: JobFailure[] = []
    const { catalog: made, background } = await working([{ source: wire }, { source: healthy }], {
      onJobFailure: (failure) => void failures.push(failure),
    })
    await until(
      'one open dead letter',
      async () => (await made.groups({ sources: ['healthy'] })).groups[0]?.openCount,
      { accept: (open) => open === 1 },
    )
    const failed = await until('a failed job', async () => background.consumer.stats().failed, {
      accept: (count) => count > 0,
    })
    expect(failed).toBeGreaterThan(0)
    expect(failures[0]).toEqual({ job: 'ingest', source: 'broken', error })
  })

  test('does not start with invalid ingest options', async () => {
    const source = { source: new Wire('unset'), ingest: { mask: ['card/number'] } }
    const { message } = await refusal(working([source]))
    expect(message).toContain(
      "mask: expected a JSON Pointer such as '/card/number', got 'card/number'",
    )
  })
})

describe('a role', () => {
  test('runs only its own jobs, through a separate queue', async () => {
    await pool.query('delete from redrive.outbox')
    const wire = new Wire('roles', [dead({ signature: SIGNATURE })])
    const own = poolOn(pool.options.connectionString ?? '', 16)
    const made = catalog({ pool: own })
    const options = { catalog: made, pool: own, sources: [{ source: wire }] }
    const started = [
      await startBackground({ ...options, role: 'replay' }),
      await startBackground({ ...options, role: 'watch' }),
    ]
    stops.push(async () => {
      await Promise.all(started.map((one) => one.stop({ drain: '5s' })))
      await own.end()
    })
    const asked = async () => {
      const text = 'select distinct queue, type from redrive.outbox order by queue, type'
      return (await rows<{ queue: string; type: string }>(pool, text)).map(
        ({ queue, type }) => `${queue} ${type}`,
      )
    }
    const ofReplay = ['auto_replay', 'publish', 'replay_set_aside', 'settle'].map(
      (one) => `redrive.catalog.replay ${one}`,
    )
    const ofWatch = ['upkeep', 'watch'].map((one) => `redrive.catalog.watch ${one}`)
    await until('all jobs', asked, {
      accept: (seen) => seen.length === ofReplay.length + ofWatch.length,
    })
    expect(await asked()).toEqual([...ofReplay, ...ofWatch])
    expect(await wire.depth()).toBe(1)
    started.push(await startBackground({ ...options, role: 'ingest' }))
    await until('an empty source', () => wire.depth(), { accept: (depth) => depth === 0 })
    expect(await asked()).toEqual(['redrive.catalog.ingest ingest', ...ofReplay, ...ofWatch])
  })
})

/** Two users enable automatic replays. */
async function enable(
  { replays }: { readonly replays: Replays },
  source: string,
  options: { readonly quietFor?: Duration; readonly ratePerSecond?: number } = {},
): Promise<void> {
  await replays.enableAutoReplay(source, { by: 'ada', ...options })
  await replays.enableAutoReplay(source, { by: 'eve', ...options })
}

describe('automatic replay', () => {
  test('needs two users with the same options, and one user disables it', async () => {
    const { replays, wire } = await staged(pool, 'auto11', 1, () => ({
      class: 'transient',
      at: Date.now() - 600_000,
    }))
    const set = (by: string, ratePerSecond = 10) =>
      replays.enableAutoReplay('auto11', { by, ratePerSecond })
    const started: AutoReplayRun[] = []
    const turn = () => replays.autoReplay([{ source: wire }], async (run) => void started.push(run))
    expect(await set('ada')).toBe('requested')
    expect(await set('ada')).toBe('requested')
    expect(await set('eve', 20)).toBe('requested')
    await turn()
    expect(started).toEqual([])
    expect(await set('ada', 20)).toBe('enabled')
    expect(await set('ada', 20)).toBe('enabled')
    expect(await replays.enableAutoReplay('auto11', undefined)).toBe('disabled')
    await turn()
    expect(started).toEqual([])
    await set('ada')
    expect(await set('eve')).toBe('enabled')
    await turn()
    expect(started).toMatchObject([{ source: 'auto11', approvedBy: 'eve' }])
    const anyone = catalog({ pool, approval: 'anyone' })
    expect(await anyone.replays.enableAutoReplay('auto11', { by: 'ada' })).toBe('enabled')
  })

  test('does not start a run when it cannot be recorded', async () => {
    const stage = await staged(pool, 'auto12', 1, () => ({
      class: 'transient',
      at: Date.now() - 600_000,
    }))
    await enable(stage, 'auto12')
    const record = () => Promise.reject(new Error('no audit log'))
    const error = await refusal(stage.replays.autoReplay([{ source: stage.wire }], record))
    expect(error).toMatchObject({ message: 'no audit log' })
    expect(await stage.statuses()).toEqual({ open: 1 })
  })

  test('has limits of its rate and its wait', async () => {
    const { replays } = await staged(pool, 'auto13', 1)
    for (const wrong of [
      { ratePerSecond: 101 },
      { ratePerSecond: 0 },
      { quietFor: '59s' as const },
    ])
      expect(
        await refusal(replays.enableAutoReplay('auto13', { by: 'ada', ...wrong })),
      ).toMatchObject({ code: 'POLICY_INVALID' })
  })

  test('runs only if a user enabled it, for transient failures without new ones and healthy consumers', async () => {
    const transient = () => ({ class: 'transient', at: Date.now() - 600_000 }) as const
    const stage = await staged(pool, 'auto', 3, transient)
    const sources = [{ source: stage.wire }]
    await stage.replays.autoReplay(sources)
    expect(await stage.statuses()).toEqual({ open: 3 })
    await enable(stage, 'auto', { quietFor: '1h' })
    await stage.replays.autoReplay(sources)
    expect(await stage.statuses()).toEqual({ open: 3 })
    await enable(stage, 'auto', { quietFor: '5m', ratePerSecond: 100 })
    const unhealthy = { source: stage.wire, health: () => Promise.reject(new Error('503')) }
    await stage.replays.autoReplay([unhealthy])
    expect(await stage.statuses()).toEqual({ open: 3 })
    await stage.replays.autoReplay(sources)
    await stage.replays.autoReplay(sources)
    const { runs } = await stage.replays.runs({ source: 'auto' })
    expect(runs).toMatchObject([{ plannedBy: 'redrive', approvedBy: 'eve' }])
    expect(await stage.ended(runs[0]?.id ?? '')).toMatchObject({ state: 'done' })
    await stage.replays.enableAutoReplay('auto', undefined)
    const [row] = await rows(
      pool,
      `select auto_replay from redrive_catalog.source where name = 'auto'`,
    )
    expect(row).toEqual({ auto_replay: null })
  })

  test('of a group is not blocked by another group whose outcomes are all unknown', async () => {
    const transient = () => ({ class: 'transient', at: Date.now() - 600_000 }) as const
    const stuck = await staged(pool, 'auto3', 1, transient)
    stuck.wire.answer = () => 'silent'
    const run = await stuck.started({ outcomeTimeout: '1s', onUnconfirmed: 'continue' })
    await stuck.until(run.id, ({ counts }) => counts.unknown === 1)
    expect(await stuck.unsettledCount()).toBe(1)
    const others = await Promise.all(
      ['auto4', 'auto5'].map((name) => staged(pool, name, 1, transient)),
    )
    const all = [stuck, ...others]
    for (const { wire } of all) await enable(stuck, wire.source)
    await stuck.replays.autoReplay(all.map(({ wire }) => ({ source: wire })))
    for (const one of others) expect(await one.statuses()).toEqual({ replaying: 1 })
    expect(await stuck.statuses()).toEqual({ unknown: 1 })
  })

  test('continues after a group that fails, and reports the error at the end', async () => {
    const transient = () => ({ class: 'transient', at: Date.now() - 600_000 }) as const
    const names = ['auto6', 'auto7', 'auto8'] as const
    const all = await Promise.all(names.map((name) => staged(pool, name, 1, transient)))
    for (const one of all) await enable(one, one.wire.source)
    const lag = () => Promise.reject(new Error('who knows'))
    const sources = all.map(({ wire }) =>
      wire.source === 'auto8' ? { source: wire } : { source: wire, lag },
    )
    const error = await refusal(all[0]?.replays.autoReplay(sources) ?? Promise.resolve())
    expect((error as AggregateError).errors).toMatchObject([
      { message: 'who knows' },
      { message: 'who knows' },
    ])
    expect(await all[2]?.statuses()).toEqual({ replaying: 1 })
  })

  test('does not start after a user has disabled it', async () => {
    const transient = () => ({ class: 'transient', at: Date.now() - 600_000 }) as const
    const all = await Promise.all(
      ['auto9', 'auto10'].map((name) => staged(pool, name, 1, transient)),
    )
    for (const one of all) await enable(one, one.wire.source)
    // Disables it while the replay is being checked.
    const health = async () => {
      for (const one of all) await one.replays.enableAutoReplay(one.wire.source, undefined)
    }
    await all[0]?.replays.autoReplay(all.map(({ wire }) => ({ source: wire, health })))
    for (const one of all) expect(await one.statuses()).toEqual({ open: 1 })
  })

  test('ignores failures of another class', async () => {
    const stage = await staged(pool, 'auto2', 2, () => ({
      class: 'business',
      at: Date.now() - 600_000,
    }))
    await enable(stage, 'auto2', { quietFor: '1m' })
    await stage.replays.autoReplay([{ source: stage.wire }])
    expect(await stage.statuses()).toEqual({ open: 2 })
  })
})
