// Measures how fast the catalog ingests and responds, compared with the bare statements.
import { answering } from '../catalog/answering.ts'
import { bareCopy, bulk, live, liveUncounted } from '../catalog/ingesting.ts'
import { bareLoop, replayRun } from '../catalog/replaying.ts'
import type { BenchCase, Comparison, Overrides } from '../comparison.ts'
import type { Candidate, MeasureOptions } from '../harness.ts'
import { dropLeftovers } from '../postgres/database.ts'
import { type Goal, type SelfCheckRange, slowerBy } from '../verdict.ts'

const COPY = 'bare COPY, no index'
const BULK = 'redrive, batches of 1,000'
const UNCOUNTED = 'redrive, batches of 100, no counts'
const LIVE = 'redrive, batches of 100'
const LOOP = 'bare loop, confirm of each'
const LOOP_OF_100 = 'bare loop, confirm of 100'
const RUN = 'redrive, a run'

const FULL: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 10,
  sampleMs: 1_500,
  warmupRounds: 1,
  seed: 1,
  // Ten batches, because the first and the last run without a concurrent one.
  minCount: 10_000,
  // Rows are in memory before the timing starts.
  maxCount: 40_000,
}
const QUICK: typeof FULL = { ...FULL, rounds: 4, sampleMs: 300, minCount: 3_000 }

const selfCheck: SelfCheckRange = {
  low: 0.9,
  high: 1.1,
  reason: 'the goals are a factor of 2 and of 8/7; a deviation of 10 % cannot change the verdict',
}

const comparison = (
  name: string,
  summary: string,
  candidates: readonly Candidate[],
  goal: Goal,
  { quick }: Overrides,
): Comparison => ({
  name: `catalog.${name}`,
  summary,
  candidates,
  baseline: goal.against,
  options: { ...(quick ? QUICK : FULL), twinOf: goal.against },
  selfCheck,
  goals: [goal],
})

const bulkGoal: Goal = {
  name: 'redrive/copy',
  candidate: BULK,
  against: COPY,
  metric: 'wallNs',
  atMost: slowerBy(0.5),
}

const liveGoal: Goal = {
  name: 'counted/uncounted',
  candidate: LIVE,
  against: UNCOUNTED,
  metric: 'wallNs',
  atMost: slowerBy(0.87),
}

/** Compared with a script, which waits for the broker's confirm of each message before the next. */
const replayGoal: Goal = {
  name: 'redrive/loop',
  candidate: RUN,
  against: LOOP,
  metric: 'wallNs',
  atMost: slowerBy(0.8),
}

export const bench: BenchCase = {
  summary: 'A catalog of dead letters of 1 KB and 200 kinds on PostgreSQL',
  comparisons: [
    async (overrides) => {
      await dropLeftovers()
      const candidates = [await bareCopy(COPY), await bulk(BULK)]
      return comparison(
        'bulk',
        'a backlog of a broker is ingested',
        candidates,
        bulkGoal,
        overrides,
      )
    },
    async (overrides) => {
      const candidates = [await liveUncounted(UNCOUNTED), await live(LIVE)]
      return comparison(
        'live',
        'dead letters are ingested as they arrive',
        candidates,
        liveGoal,
        overrides,
      )
    },
    async (overrides) => {
      const candidates = [
        await bareLoop(LOOP, 1),
        await bareLoop(LOOP_OF_100, 100),
        await replayRun(RUN),
      ]
      const summary = 'a run is published to RabbitMQ without a rate'
      const made = comparison('replay', summary, candidates, replayGoal, overrides)
      // A run ends after this number. More would measure its preparation.
      return { ...made, options: { ...made.options, minCount: 1_000, maxCount: 10_000 } }
    },
  ],
  gauges: [answering],
}
