// Measures the cost to emit, compared with handwritten requests and loggers that send to Loki. Also
// measures how fast events are stored when the sink is down. Every event has about 300 bytes;
// connecting is not timed.
import type { BenchCase, Comparison } from '../comparison.ts'
import { type Entrants, openAll } from '../emission/contender.ts'
import { withFetch, withHttp } from '../emission/handwritten.ts'
import { pinoLoki, winstonLoki } from '../emission/loggers.ts'
import { FIXED, redrive } from '../emission/redrive.ts'
import { appending, storing } from '../emission/storing.ts'
import type { Candidate, MeasureOptions } from '../harness.ts'
import type { Goal, SelfCheckRange } from '../verdict.ts'

const FETCH = 'fetch, hand-written'
const HTTP = 'node:http, hand-written'
const REDRIVE = 'redrive'

// ---- The sink is healthy: events arrive in batches of 100
// -----------------------------------------

const delivering: Entrants = [
  { name: FETCH, open: withFetch },
  { name: HTTP, open: withHttp },
  // The number of concurrent requests is the same for all candidates from the first event on.
  { name: REDRIVE, open: redrive({ policy: FIXED }) },
  // The default. The limit has grown in the warm-up, because nothing fails.
  { name: 'redrive, adaptive limit', open: redrive({ policy: {} }) },
  { name: 'redrive, three sinks', open: redrive({ policy: FIXED, sinks: 3 }), copies: 3 },
  { name: 'pino, pino-loki', open: pinoLoki },
  { name: 'winston, winston-loki', open: winstonLoki },
]

const deliveryGoals: readonly Goal[] = [
  { name: 'redrive/fetch', candidate: REDRIVE, against: FETCH, metric: 'wallNs', atMost: 1.5 },
  {
    name: 'redrive/fetch',
    candidate: REDRIVE,
    against: FETCH,
    metric: 'cpuNs',
    atMost: 1.5,
    aim: true,
  },
  // Redrive's sinks use this client. The part above 1 is Redrive's own cost.
  {
    name: 'redrive/http',
    candidate: REDRIVE,
    against: HTTP,
    metric: 'wallNs',
    atMost: 1.5,
    aim: true,
  },
]

// ---- The sink is down: events are stored ----------------------------------------------------------

const APPEND = 'append and fdatasync, hand-written'
const STORED = 'redrive, breaker open'

const storingGoals: readonly Goal[] = [
  {
    name: 'redrive/append',
    candidate: STORED,
    against: APPEND,
    metric: 'wallNs',
    atMost: 2,
    aim: true,
  },
]

// -------------------------------------------------------------------------------------------------

const options: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 60,
  sampleMs: 750,
  warmupRounds: 2,
  seed: 1,
  // At least 50 requests, because the last one of a sample runs without a concurrent one.
  minCount: 5_000,
  maxCount: 100_000,
}

const selfCheck: SelfCheckRange = {
  low: 0.9,
  high: 1.1,
  reason: 'the goals are a factor of 1.5 and of 2; a deviation of 10 % cannot change the verdict',
}

const comparison = (
  name: string,
  summary: string,
  candidates: readonly Candidate[],
  baseline: string,
  goals: readonly Goal[],
): Comparison => ({
  name: `emission.${name}`,
  summary,
  candidates,
  baseline,
  options: { ...options, twinOf: baseline },
  selfCheck,
  goals,
})

export const bench: BenchCase = {
  summary: 'Emitting events of 300 bytes to a server with the push API of Loki',
  comparisons: [
    async () =>
      comparison(
        'deliver',
        'the sink is healthy, batches of 100 (the loggers: every 10 ms)',
        await openAll(delivering),
        FETCH,
        deliveryGoals,
      ),
    async () =>
      comparison(
        'store',
        'the breaker is open, events are stored in the file store',
        [await appending(APPEND), storing(STORED)],
        APPEND,
        storingGoals,
      ),
  ],
}
