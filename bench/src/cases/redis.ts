// Measures the cost of Redrive on a Redis stream, compared with a handwritten loop on the plain
// client, and with the worker of BullMQ on a queue of BullMQ. Every message has 1 KB; connecting and
// filling are not timed.
import type { BenchCase, Comparison } from '../comparison.ts'
import type { MeasureOptions } from '../harness.ts'
import { bullmq } from '../redis/bullmq.ts'
import { type Entrant, type Fate, openAll } from '../redis/contender.ts'
import { handwritten } from '../redis/handwritten.ts'
import { GIVING_UP, redrive } from '../redis/redrive.ts'
import { GATE_5_PERCENT, type Goal, slowerBy } from '../verdict.ts'

const BARE = 'hand-written, batches of 50'
const REDRIVE = 'redrive'
const BULLMQ = 'bullmq'

const successes: readonly Entrant[] = [
  { name: BARE, open: handwritten },
  // The number in flight is the same from the first message on.
  { name: REDRIVE, open: redrive({ adaptiveConcurrency: 'off' }) },
  { name: BULLMQ, open: bullmq },
]

const deadLetters: readonly Entrant[] = [
  { name: BARE, open: handwritten },
  { name: REDRIVE, open: redrive(GIVING_UP) },
  { name: BULLMQ, open: bullmq },
]

const goalsOf = (least: number): readonly Goal[] => [
  throughput('redrive/hand-written', BARE, least),
  throughput('redrive/bullmq', BULLMQ, 1),
]

function throughput(name: string, against: string, least: number): Goal {
  return { name, candidate: REDRIVE, against, metric: 'wallNs', atMost: slowerBy(least) }
}

const options: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 60,
  sampleMs: 500,
  warmupRounds: 2,
  seed: 1,
  // 50 MB in the stream.
  maxCount: 50_000,
}

async function comparison(
  name: string,
  summary: string,
  { entrants, fate, goals }: Match,
): Promise<Comparison> {
  const candidates = await openAll(entrants, fate)
  const judged = { options: { ...options, twinOf: BARE }, selfCheck: GATE_5_PERCENT, goals }
  return { name: `redis.${name}`, summary, candidates, baseline: BARE, ...judged }
}

interface Match {
  readonly entrants: readonly Entrant[]
  readonly fate: Fate
  readonly goals: readonly Goal[]
}

export const bench: BenchCase = {
  summary: 'Redrive on a Redis stream: bodies of 1 KB, 50 in flight',
  comparisons: [
    () =>
      comparison('success', 'handler returns', {
        ...{ entrants: successes, fate: 'done', goals: goalsOf(0.97) },
      }),
    () =>
      comparison('dead-letter', 'error is final: a copy, then the acknowledgement', {
        ...{ entrants: deadLetters, fate: 'dead', goals: goalsOf(0.8) },
      }),
  ],
}
