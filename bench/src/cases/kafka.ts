// Measures the cost of Redrive on Kafka, compared with handwritten @platformatic/kafka code and
// with kafkajs. Every record has 1 KB; connecting and filling are not timed.
import type { BenchCase, Comparison } from '../comparison.ts'
import type { MeasureOptions } from '../harness.ts'
import { type Entrant, type Fate, openAll } from '../kafka/contender.ts'
import { bareLoop, handedOff } from '../kafka/handwritten.ts'
import { kafkajs, kafkajsHandedOff } from '../kafka/kafkajs.ts'
import { parkedMemory, parking } from '../kafka/parked.ts'
import { FIXED, GIVING_UP, redrive, RETRYING } from '../kafka/redrive.ts'
import { GATE_5_PERCENT, type Goal, slowerBy } from '../verdict.ts'

type Entrants = readonly [Entrant, ...Entrant[]]

const BARE = 'platformatic, hand-written'
const REDRIVE = 'redrive'
const KAFKAJS = 'kafkajs, hand-written'

// ---- Success: the handler returns, the offset is committed ---------------------------------------

const successes: Entrants = [
  { name: BARE, open: bareLoop },
  // The number in flight is the same for all candidates from the first record on.
  { name: REDRIVE, open: redrive(FIXED) },
  // The default. The limit has grown to its maximum in the warm-up, because nothing fails.
  { name: 'redrive, adaptive limit', open: redrive({}) },
  { name: KAFKAJS, open: kafkajs },
]

const successGoals: readonly Goal[] = [
  { ...between('hand-written', REDRIVE, BARE), atMost: slowerBy(0.95) },
]

// ---- Failure: an acknowledged copy, then the offset
// -----------------------------------------------

const deadLetters: Entrants = [
  { name: BARE, open: handedOff },
  { name: REDRIVE, open: redrive(GIVING_UP) },
  { name: KAFKAJS, open: kafkajsHandedOff },
]

const retries: Entrants = [
  { name: BARE, open: handedOff },
  { name: REDRIVE, open: redrive(RETRYING) },
  { name: KAFKAJS, open: kafkajsHandedOff },
]

const failureGoals: readonly Goal[] = [
  { ...between('hand-written', REDRIVE, BARE), atMost: slowerBy(0.85) },
]

// ---- The same under other conditions
// --------------------------------------------------------------

const ONE = '1 partition'
const MANY = '48 partitions'

const partitions: Entrants = [
  { name: ONE, open: redrive(FIXED), partitions: 1 },
  { name: '6 partitions', open: redrive(FIXED), partitions: 6 },
  { name: MANY, open: redrive(FIXED), partitions: 48 },
]

const partitionGoals: readonly Goal[] = [{ ...between('48/1', MANY, ONE), atMost: 1.1 }]

const NONE_PARKED = 'no key parked'
const PARKED = '10,000 keys parked'

const parked: Entrants = [
  { name: NONE_PARKED, open: parking(0) },
  { name: PARKED, open: parking(10_000) },
]

const parkedGoals: readonly Goal[] = [
  { ...between('parked/none', PARKED, NONE_PARKED), atMost: 1.1 },
]

// -------------------------------------------------------------------------------------------------

function between(name: string, candidate: string, against: string): Omit<Goal, 'atMost'> {
  return { name, candidate, against, metric: 'wallNs' }
}

const options: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 60,
  sampleMs: 750,
  warmupRounds: 2,
  seed: 1,
  // 100 MB in the topic: more would measure the disk. The number is the same for all candidates,
  // because read-ahead counts more in a small sample.
  minCount: 100_000,
  maxCount: 100_000,
}

/** A failure takes at least ten times as long. */
const FAILURES = { minCount: 2_000, maxCount: 20_000 }

async function comparison(
  name: string,
  summary: string,
  entrants: Entrants,
  goals: readonly Goal[],
  fate: Fate = 'done',
): Promise<Comparison> {
  const baseline = entrants[0].name
  const counts = fate === 'done' ? {} : FAILURES
  const judged = {
    options: { ...options, ...counts, twinOf: baseline },
    selfCheck: GATE_5_PERCENT,
    goals,
  }
  const candidates = await openAll(entrants, fate)
  return { name: `kafka.${name}`, summary, candidates, baseline, ...judged }
}

export const bench: BenchCase = {
  summary: 'Redrive on Kafka: records of 1 KB, 50 in flight',
  comparisons: [
    () => comparison('success', 'handler returns, 6 partitions', successes, successGoals),
    () =>
      comparison(
        'dead-letter',
        'error is final: acknowledged copy, then the offset',
        deadLetters,
        failureGoals,
        'deadLettered',
      ),
    () =>
      comparison(
        'retry',
        'copy to a retry topic, acknowledged, then the offset',
        retries,
        failureGoals,
        'retried',
      ),
    () => comparison('partitions', 'redrive, handler returns', partitions, partitionGoals),
    () => comparison('parked', 'redrive in lane order, handler returns', parked, parkedGoals),
  ],
  gauges: [parkedMemory],
}
