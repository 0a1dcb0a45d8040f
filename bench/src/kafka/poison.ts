import type { Overrides } from '../comparison.ts'
import { type Gauge, judgeFigure, type Limit } from '../gauge.ts'
import { aligned } from '../report.ts'
import { type Course, type Result, race } from './race.ts'
import { kafkajsRacer, nestRacer, redriveRacer } from './racers.ts'

const RECORDS = 100_000
const QUICK_RECORDS = 5_000
const POISON = 1_000
/** 30 s more than Redrive needed, and at most 120 s for Redrive itself. */
const BEYOND_MS = 30_000
const REDRIVE_MS = 120_000

const LEFT: Limit = { name: 'redrive.unhandled', unit: 'records', below: 1 }

export async function poison({ quick }: Overrides): Promise<Gauge> {
  const course = { records: quick ? QUICK_RECORDS : RECORDS, poison: POISON }
  const clean = await race(
    { ...redriveRacer, name: 'redrive, no poison' },
    { ...course, poison: undefined },
    REDRIVE_MS,
  )
  const ours = await race(redriveRacer, course, REDRIVE_MS)
  const results = [clean, ours]
  const mostMs = ours.seconds * 1_000 + BEYOND_MS
  for (const racer of [kafkajsRacer, nestRacer]) {
    results.push(await race(racer, course, mostMs))
  }
  return gaugeOf(course, results, ours)
}

export function gaugeOf(course: Course, results: readonly Result[], ours: Result): Gauge {
  const left = course.records - 1 - ours.others
  return {
    name: 'kafka.poison',
    summary: `one partition of ${course.records} records of 200 bytes, number ${course.poison} always fails`,
    details: aligned([
      ['', 'others handled', 'seconds', '/s before', '/s after', 'attempts', 'the poison'],
      ...results.map((result) => row(course, result)),
    ]),
    verdicts: [judgeFigure(LEFT, { median: left, low: left, high: left })],
  }
}

function row(course: Course, result: Result): string[] {
  const { name, others, seconds, perSecondBefore, perSecondAfter, poisonAttempts } = result
  return [
    name,
    String(others),
    seconds.toFixed(1),
    perSecondBefore?.toFixed(0) ?? '',
    perSecondAfter?.toFixed(0) ?? '',
    String(poisonAttempts),
    fateOf(course, result),
  ]
}

/** Returns the outcome of the poison record, as far as the broker shows it. */
export function fateOf({ records }: Course, result: Result): string {
  const { poisonAttempts, deadLetters, became, committed } = result
  if (poisonAttempts === 0) return ''
  if (deadLetters > 0) return became === 'quarantine' ? 'quarantined' : 'dead letter'
  return committed === records ? 'committed, lost' : `blocks the partition at ${committed}`
}
