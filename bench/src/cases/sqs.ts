// Measures the cost of Redrive on SQS, compared with a loop on the client and with sqs-consumer.
// Every message has 1 KB; filling is not timed. The server is ElasticMQ on this machine.
import { business, type PolicyOptions } from '@redrive/core'
import type { BenchCase, Comparison } from '../comparison.ts'
import { type Gauge, judgeFigure } from '../gauge.ts'
import { Declined } from '../handlers.ts'
import type { MeasureOptions } from '../harness.ts'
import { type Entrant, openAll, type Requests } from '../sqs/contender.ts'
import { bareLoops, consumers, redrive } from '../sqs/contenders.ts'
import { GATE_3_PERCENT, type Goal, slowerBy } from '../verdict.ts'

const BARE = 'client, batches of ten'
const REDRIVE = 'redrive'
const LIBRARY = 'sqs-consumer'
const CONCURRENCY = 50

/** Every failure is final, and a flood of failures does not stop the consumer. */
const GIVING_UP: PolicyOptions = {
  classify: [business(Declined)],
  flood: 'off',
  adaptiveConcurrency: 'off',
}

const successes: readonly Entrant[] = [
  { name: BARE, open: bareLoops },
  { name: REDRIVE, open: redrive({ adaptiveConcurrency: 'off' }) },
  { name: LIBRARY, open: consumers },
]

const deadLetters: readonly Entrant[] = [
  { name: BARE, open: bareLoops },
  { name: REDRIVE, open: redrive(GIVING_UP) },
]

const goal = (atMost: number): Goal => ({
  name: 'redrive/throughput',
  candidate: REDRIVE,
  against: BARE,
  metric: 'wallNs',
  atMost,
})

const options: Omit<MeasureOptions, 'twinOf'> = {
  rounds: 30,
  sampleMs: 750,
  warmupRounds: 2,
  seed: 1,
  // Filling takes longer than a sample.
  maxCount: 5_000,
}

const counts: { readonly name: string; readonly requests: Requests }[] = []

async function comparison(
  name: string,
  summary: string,
  entrants: readonly Entrant[],
  isDeadLettered: boolean,
  atMost: number,
): Promise<Comparison> {
  const requests: Requests = new Map()
  counts.push({ name, requests })
  return {
    name: `sqs.${name}`,
    summary,
    candidates: await openAll(entrants, { concurrency: CONCURRENCY, isDeadLettered }, requests),
    baseline: BARE,
    options: { ...options, twinOf: BARE },
    selfCheck: GATE_3_PERCENT,
    goals: [goal(atMost)],
  }
}

/** 0.3 requests per message: batches of ten would need 0.2, and the last ones of a sample are not full. */
const MOST_REQUESTS = 0.3

function requestsPerMessage(): Promise<Gauge> {
  const rows = counts.flatMap(({ name, requests }) =>
    [...requests].map(([candidate, total]) => ({
      name,
      candidate,
      figure: total.requests / total.messages,
    })),
  )
  const [own] = rows.filter(({ candidate, name }) => candidate === REDRIVE && name === 'success')
  const figure = own?.figure ?? Number.NaN
  const limit = { name: 'success.requests', unit: 'requests', below: MOST_REQUESTS } as const
  return Promise.resolve({
    name: 'sqs.requests',
    summary: 'requests per message, which Amazon bills',
    details: rows
      .map(({ name, candidate, figure: one }) => `${name}  ${candidate}  ${one.toFixed(3)}`)
      .join('\n'),
    verdicts: [judgeFigure(limit, { median: figure, low: figure, high: figure })],
  })
}

export const bench: BenchCase = {
  summary: 'Redrive on SQS: standard queues of ElasticMQ, bodies of 1 KB',
  comparisons: [
    () => comparison('success', 'handler returns', successes, false, slowerBy(0.97)),
    () =>
      comparison(
        'dead-letter',
        'error is final: confirmed copy, then deletion',
        deadLetters,
        true,
        slowerBy(0.8),
      ),
  ],
  gauges: [requestsPerMessage],
}
