// Measures the cost of Redrive on PostgreSQL, compared with a handwritten loop, graphile-worker and
// pg-boss. Also compares Redrive with itself under conditions that slow others down. Every message
// has 1 KB; connecting and filling are not timed.
import type { BenchCase, Comparison, Overrides } from '../comparison.ts'
import type { MeasureOptions } from '../harness.ts'
import { type Entrants, type Fate, openAll } from '../postgres/contender.ts'
import { dropLeftovers } from '../postgres/database.ts'
import { graphileWorker } from '../postgres/graphile-worker.ts'
import { bareInbox, bareLoop } from '../postgres/handwritten.ts'
import { EMPTY, FULL, histories } from '../postgres/history.ts'
import { pgBoss } from '../postgres/pg-boss.ts'
import { ANALYZED, CHOSEN, GENERIC, planCaches, STALE, statistics } from '../postgres/plans.ts'
import { FINAL_ERROR, FIXED, ONE_ATTEMPT, redrive } from '../postgres/redrive.ts'
import { GATE_5_PERCENT, type Goal, slowerBy } from '../verdict.ts'

const BARE = 'hand-written, batches of 100'
const REDRIVE = 'redrive'
const GRAPHILE = 'graphile-worker'
const PG_BOSS = 'pg-boss'

// ---- Success: the handler returns, the row is done ----------------------------------------------

const successes: Entrants = [
  { name: BARE, open: bareLoop },
  // The number in flight is the same from the first message on.
  { name: REDRIVE, open: redrive({ policy: FIXED }) },
  // The default. The limit has grown to its maximum in the warm-up, because nothing fails.
  { name: 'redrive, adaptive limit', open: redrive({ policy: {} }) },
  { name: GRAPHILE, open: graphileWorker },
  { name: PG_BOSS, open: pgBoss },
]

const successGoals: readonly Goal[] = [
  throughput('redrive/hand-written', REDRIVE, BARE, 0.95),
  { ...throughput('redrive/graphile-worker', REDRIVE, GRAPHILE, 1.1), aim: true },
  throughput('redrive/pg-boss', REDRIVE, PG_BOSS, 1.5),
]

// ---- Success with an inbox: each key takes effect once -------------------------------------------

const INBOX = 'redrive, inbox'
const BATCHED_INBOX = 'redrive, inbox with batch: 50'
const BARE_INBOX = 'hand-written, a transaction per message'

const inboxes: Entrants = [
  { name: BARE_INBOX, open: bareInbox },
  { name: INBOX, open: redrive({ policy: FIXED, inboxBatch: 1 }) },
  { name: BATCHED_INBOX, open: redrive({ policy: FIXED, inboxBatch: 50 }) },
]

const inboxGoals: readonly Goal[] = [
  throughput('redrive/hand-written', INBOX, BARE_INBOX, 0.9),
  throughput('batched/hand-written', BATCHED_INBOX, BARE_INBOX, 3),
]

// ---- Failure: one attempt, then the row has failed and keeps its error ----------------------------

const failures: Entrants = [
  { name: BARE, open: bareLoop },
  { name: REDRIVE, open: redrive({ policy: ONE_ATTEMPT }) },
  { name: 'redrive, final error', open: redrive({ policy: FINAL_ERROR }) },
  { name: GRAPHILE, open: graphileWorker },
  { name: PG_BOSS, open: pgBoss },
]

const failureGoals: readonly Goal[] = [
  throughput('redrive/hand-written', REDRIVE, BARE, 0.95),
  throughput('redrive/graphile-worker', REDRIVE, GRAPHILE, 1),
  throughput('redrive/pg-boss', REDRIVE, PG_BOSS, 1),
]

// ---- The same under other conditions
// --------------------------------------------------------------

const DELIVERED = 5_000_000
const QUICK_DELIVERED = 200_000

/** A condition that must not change the cost. */
const unmoved = (changed: string, usual: string): readonly Goal[] => [
  throughput('changed/usual', changed, usual, 0.95),
]

// -------------------------------------------------------------------------------------------------

function throughput(name: string, candidate: string, against: string, least: number): Goal {
  return { name, candidate, against, metric: 'wallNs', atMost: slowerBy(least) }
}

const options: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 60,
  sampleMs: 750,
  warmupRounds: 2,
  seed: 1,
  // On tables of a thousand rows, the peers' statements get plans that take ten times as long.
  minCount: 10_000,
  // 50 MB in the table: more would measure the disk.
  maxCount: 50_000,
}

/** The same number as in the other queue. Statistics of only that queue are then wrong by half. */
const SAME_COUNT = { minCount: 20_000, maxCount: 20_000 }

async function comparison(
  name: string,
  summary: string,
  entrants: Entrants,
  goals: readonly Goal[],
  { fate = 'done', ...changed }: { fate?: Fate } & Partial<MeasureOptions> = {},
): Promise<Comparison> {
  const baseline = entrants[0].name
  const judged = {
    options: { ...options, ...changed, twinOf: baseline },
    selfCheck: GATE_5_PERCENT,
    goals,
  }
  await dropLeftovers()
  const candidates = await openAll(entrants, fate)
  return { name: `postgres.${name}`, summary, candidates, baseline, ...judged }
}

export const bench: BenchCase = {
  summary: 'Redrive on PostgreSQL: one attempt per message, bodies of 1 KB',
  comparisons: [
    () => comparison('success', 'handler returns, the row is done', successes, successGoals),
    () =>
      comparison(
        'inbox',
        'handler returns, its key is stored in its transaction',
        inboxes,
        inboxGoals,
        { minCount: 3_000 },
      ),
    () =>
      comparison(
        'failure',
        'handler throws, the row has failed and keeps its error',
        failures,
        failureGoals,
        { fate: 'failed' },
      ),
    () =>
      comparison(
        'statistics',
        'analyzed before this queue was filled, compared with after',
        statistics,
        unmoved(STALE, ANALYZED),
        SAME_COUNT,
      ),
    () =>
      comparison(
        'plans',
        'plan_cache_mode=force_generic_plan, compared with the default',
        planCaches,
        unmoved(GENERIC, CHOSEN),
      ),
    ({ quick }: Overrides) => {
      const delivered = quick ? QUICK_DELIVERED : DELIVERED
      return comparison(
        'history',
        `${delivered.toLocaleString('en-US')} delivered rows in the table, compared with none`,
        histories(delivered),
        unmoved(FULL, EMPTY),
      )
    },
  ],
}
