// Measures the cost of Redrive on RabbitMQ, compared with handwritten amqplib code and with rascal.
// Every message has 1 KB and every queue is a quorum queue; connecting and filling are not timed.
import type { BenchCase, Comparison } from '../comparison.ts'
import type { Candidate, MeasureOptions } from '../harness.ts'
import { type Entrant, type Fate, openAll } from '../rabbitmq/contender.ts'
import { bareAcks, confirmedDeadLetters, confirmedRetries } from '../rabbitmq/handwritten.ts'
import { latency } from '../rabbitmq/latency.ts'
import { AT_MOST_ONCE, rascal } from '../rabbitmq/rascal.ts'
import { GIVING_UP, redrive, retrying, withoutDelay } from '../rabbitmq/redrive.ts'
import { GATE_3_PERCENT, type Goal, slowerBy } from '../verdict.ts'

const BARE = 'amqplib, ack per message'
const HAND_WRITTEN = 'hand-written, confirmed'
const REDRIVE = 'redrive'
const ADAPTIVE = 'redrive, adaptive limit'
const RASCAL = 'rascal'

const PREFETCH = 50
const WIDE_PREFETCH = 500
const ATTEMPTS = 3

// ---- Success: the handler returns, the message is acknowledged ---------------------------------

const successes: readonly Entrant[] = [
  { name: BARE, open: bareAcks },
  // The number in flight is the same for all candidates from the first message on.
  { name: REDRIVE, open: redrive({ adaptiveConcurrency: 'off' }) },
  // The default. The limit has grown to its maximum in the warm-up, because nothing fails.
  { name: ADAPTIVE, open: redrive({}) },
  { name: RASCAL, open: rascal() },
]

const successFate = (prefetch: number): Fate => ({ prefetch, attempts: 1, isDeadLettered: false })

const successGoals: readonly Goal[] = [
  { ...between('throughput', BARE), metric: 'wallNs', atMost: slowerBy(0.97) },
  { ...between('throughput.aim', BARE), metric: 'wallNs', atMost: slowerBy(1.2), aim: true },
  { ...between('cpu', BARE), metric: 'cpuNs', atMost: 1.03 },
]

// ---- Dead letter: the handler's error is final --------------------------------------------------

const deadLetters: readonly Entrant[] = [
  { name: HAND_WRITTEN, open: confirmedDeadLetters },
  { name: REDRIVE, open: redrive(GIVING_UP) },
  { name: RASCAL, open: rascal(), queueArguments: AT_MOST_ONCE },
]

const deadLetterFate: Fate = { prefetch: PREFETCH, attempts: 1, isDeadLettered: true }

const deadLetterGoals: readonly Goal[] = [
  { ...between('throughput', HAND_WRITTEN), metric: 'wallNs', atMost: slowerBy(0.95) },
]

// ---- Retries: three attempts, then the dead letter ----------------------------------------------

const retries: readonly Entrant[] = [
  { name: HAND_WRITTEN, open: confirmedRetries(ATTEMPTS) },
  { name: REDRIVE, open: redrive(retrying(ATTEMPTS), withoutDelay) },
  {
    name: RASCAL,
    open: rascal([{ strategy: 'republish', attempts: ATTEMPTS - 1 }, { strategy: 'nack' }]),
    queueArguments: AT_MOST_ONCE,
  },
]

const retryFate: Fate = { prefetch: PREFETCH, attempts: ATTEMPTS, isDeadLettered: true }

const retryGoals: readonly Goal[] = [
  { ...between('throughput', HAND_WRITTEN), metric: 'wallNs', atMost: slowerBy(0.9) },
]

// -------------------------------------------------------------------------------------------------

function between(name: string, against: string): Pick<Goal, 'name' | 'candidate' | 'against'> {
  return { name: `redrive/${name}`, candidate: REDRIVE, against }
}

const options: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 60,
  sampleMs: 750,
  warmupRounds: 2,
  seed: 1,
  // 50 MB in the queue: more would measure the broker's paging.
  maxCount: 50_000,
}

function comparison(
  name: string,
  summary: string,
  candidates: readonly Candidate[],
  baseline: string,
  goals: readonly Goal[],
): Comparison {
  const judged = { options: { ...options, twinOf: baseline }, selfCheck: GATE_3_PERCENT, goals }
  return { name: `rabbitmq.${name}`, summary, candidates, baseline, ...judged }
}

async function success(prefetch: number): Promise<Comparison> {
  const candidates = await openAll(successes, successFate(prefetch))
  const name = `success-${prefetch}`
  return comparison(name, `handler returns, prefetch ${prefetch}`, candidates, BARE, successGoals)
}

export const bench: BenchCase = {
  summary: 'Redrive on RabbitMQ: quorum queues, bodies of 1 KB',
  comparisons: [
    () => success(PREFETCH),
    () => success(WIDE_PREFETCH),
    async () =>
      comparison(
        'dead-letter',
        'error is final: confirmed copy, then ack (rascal: nack, at most once)',
        await openAll(deadLetters, deadLetterFate),
        HAND_WRITTEN,
        deadLetterGoals,
      ),
    async () =>
      comparison(
        'retries',
        `${ATTEMPTS} attempts by confirmed republish, then the dead letter`,
        await openAll(retries, retryFate),
        HAND_WRITTEN,
        retryGoals,
      ),
  ],
  gauges: [latency],
}
