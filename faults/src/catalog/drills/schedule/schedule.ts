import type { ReplayRun } from '@redrive/catalog'
import { brokenIf } from '../../../evidence/evidence.ts'
import { readHistory } from '../../../evidence/history.ts'
import type { Result, Scenario, Session } from '../../../harness/scenario.ts'
import { becomesTrue, lasting, until } from '../../../harness/wait.ts'
import { onSite, type Site } from '../site.ts'
import { deadLettersOf, recordedSource } from './recorded-source.ts'

const SLOW = 0.1
const FAST = 1_000
/** 1,500 messages at 1,000/s: 1.5 s. */
const COUNT = 1_500
/** Items of a slow run: more than it can publish during the scenario. */
const SLOW_COUNT = 20
const SLOW_RUNS = ['slow-1', 'slow-2', 'slow-3', 'slow-4']
/** The best of three: a stalled machine makes single measurements longer, never shorter. */
const ROUNDS = [1, 2, 3]
const LONGER_MAX = 1.2
/** 20 s for a run of 1.5 s. */
const ROUND_MS = 20_000
const RUN_MS = 60_000

const slowRuns: Scenario = {
  name: 'slow-runs',
  story: `four runs at ${SLOW}/s next to one at ${FAST}/s, with two processes: it takes as long as alone`,
  play: (session) => onSite('slow-runs', 'postgres', (site) => playSlow(site, session)),
}

async function playSlow(site: Site, { folder, say }: Session): Promise<Result> {
  const fast = ROUNDS.flatMap((round) => [`alone-${round}`, `next-to-${round}`])
  await ingest(site, SLOW_RUNS, SLOW_COUNT)
  await ingest(site, fast, COUNT)
  await startWorkers(site, folder, [...SLOW_RUNS, ...fast])
  const slow: ReplayRun[] = []
  for (const source of SLOW_RUNS) slow.push(await started(site, source, SLOW))
  await published(folder, SLOW_RUNS, 1)
  const { replays } = site.catalog
  const alone: number[] = []
  const together: number[] = []
  for (const round of ROUNDS) {
    for (const { id } of slow) await replays.pause(id, { by: 'ada' })
    alone.push(await measured(site, folder, `alone-${round}`))
    for (const { id } of slow) await replays.resume(id, { by: 'ada' })
    together.push(await measured(site, folder, `next-to-${round}`))
    say(`alone ${alone.at(-1)} ms, next to four slow runs ${together.at(-1)} ms`)
  }
  const [best, bestTogether] = [Math.min(...alone), Math.min(...together)]
  const leastMs = ((COUNT - 1) / FAST) * 1_000
  return {
    events: COUNT * fast.length,
    figures: [`${COUNT} at ${FAST}/s: ${best} ms alone, ${bestTogether} ms next to four slow runs`],
    broken: brokenIf(
      [bestTogether > best * LONGER_MAX, 'too slow', `${bestTogether} ms instead of ${best} ms`],
      // All processes share the rate of a run.
      [Math.min(best, bestTogether) < leastMs, 'storm', `${COUNT} within ${best} ms`],
    ),
  }
}

/** Returns how long a run takes from its start to its last publish, or the longest time to wait for it. */
async function measured(site: Site, folder: string, source: string): Promise<number> {
  const from = Date.now()
  await started(site, source, FAST)
  const isOver = () => publishesOf(folder, source).length >= COUNT
  const isInTime = await becomesTrue(isOver, { withinMs: ROUND_MS })
  return isInTime ? (publishesOf(folder, source).at(-1) ?? from) - from : ROUND_MS
}

/** How to stop a run. */
const STOPS = ['pause', 'cancel'] as const
/** At 1,000/s it publishes for 3 s. */
const STOPPED_COUNT = 3_000
const STOP_MS = 1_000
/** 11 s: the next item of a run at 0.1/s would be published within this time. */
const WATCHED_MS = 11_000

const stopRuns: Scenario = {
  name: 'stop-runs',
  story: `pause and cancel runs at ${SLOW}/s and ${FAST}/s: nothing is published more than a second later`,
  play: (session) => onSite('stop-runs', 'postgres', (site) => playStop(site, session)),
}

async function playStop(site: Site, { folder, say }: Session): Promise<Result> {
  const cases = STOPS.flatMap((stop) =>
    [SLOW, FAST].map((rate) => ({ stop, rate, source: `${stop} at ${rate}` })),
  )
  for (const { source, rate } of cases) {
    await ingest(site, [source], rate === SLOW ? SLOW_COUNT : STOPPED_COUNT)
  }
  const sources = cases.map(({ source }) => source)
  await startWorkers(site, folder, sources)
  const stopped = await Promise.all(
    cases.map(async ({ stop, rate, source }) => {
      const run = await started(site, source, rate)
      await published(folder, [source], rate === SLOW ? 1 : FAST / 2)
      const { state, counts } = await site.catalog.replays[stop](run.id, { by: 'ada' })
      say(`${source}/s: ${state}`)
      return { source, at: Date.now(), left: counts.queued + counts.claimed + counts.cancelled }
    }),
  )
  await lasting(WATCHED_MS)
  const late = stopped.map(({ source, at }) => ({
    source,
    ms: Math.max(0, (publishesOf(folder, source).at(-1) ?? at) - at),
  }))
  const count = readHistory(folder).length
  return {
    events: count,
    figures: late.map(({ source, ms }) => `${source}/s: last publish ${ms} ms later`),
    broken: brokenIf(
      ...late.map(
        ({ source, ms }) => [ms > STOP_MS, 'not fenced', `${source}/s: ${ms} ms later`] as const,
      ),
      ...stopped.map(
        ({ source, left }) => [left === 0, 'scenario', `${source}/s: all were published`] as const,
      ),
    ),
  }
}

async function ingest(site: Site, sources: readonly string[], count: number): Promise<void> {
  for (const source of sources) {
    await site.catalog.ingest(recordedSource(source, undefined, deadLettersOf(source, count)))
  }
}

async function startWorkers(site: Site, folder: string, sources: readonly string[]): Promise<void> {
  const { catalogUrl } = site.where
  for (const name of ['worker-1', 'worker-2']) {
    await site.start('./schedule/worker.ts', { catalogUrl, name, folder, sources })
  }
}

async function started(site: Site, source: string, ratePerSecond: number): Promise<ReplayRun> {
  const { replays } = site.catalog
  const selection = { query: { sources: [source], after: Date.now() - HOUR_MS } }
  const options = { ratePerSecond, canary: [], proof: 'returns' } as const
  const { id, hash } = await replays.plan({ selection, by: 'ada', ...options })
  return replays.approve(id, { hash, by: 'bob' })
}

const HOUR_MS = 3_600_000

/** Resolves when each source has this number of publishes. */
async function published(folder: string, sources: readonly string[], count: number): Promise<void> {
  const isReached = () => sources.every((one) => publishesOf(folder, one).length >= count)
  await until(`${count} are published`, isReached, { withinMs: RUN_MS })
}

/** Returns the times of the publishes of a source, in order. */
const publishesOf = (folder: string, source: string): readonly number[] =>
  readHistory(folder).flatMap((one) =>
    one.what === 'replay_received' && one.id === source ? [one.at] : [],
  )

export const SCHEDULE: readonly Scenario[] = [slowRuns, stopRuns]
