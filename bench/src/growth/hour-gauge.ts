// The verdicts on a long mixed run. Pure.
import { type Gauge, judgeFigure } from '../gauge.ts'
import { aligned } from '../report.ts'
import type { Load, TimedResponse } from '../server/asking.ts'
import { median, quantile } from '../stats.ts'

/** Five minutes at the beginning and at the end, or a third of a shorter run. */
const WINDOW_SECONDS = 300
const P99_GROWTH = 2
/** In the last fifth, at most a tenth above the second fifth: the first one fills caches. */
const MEMORY_GROWTH = 1.1

export interface Hour {
  readonly count: number
  readonly seconds: number
  readonly roles: readonly string[]
  readonly load: Load
  readonly sent: number
  /** Dead letters that no consumer received again. */
  readonly lost: number
  /** Dead letters that the consumer received more than once. */
  readonly twice: number
  /** Number of replay runs. */
  readonly runs: number
}

export function hourGauge(hour: Hour): Gauge {
  const { count, seconds, load, roles, sent, lost, twice, runs } = hour
  const { responses, errors, memory } = load
  const windowMs = Math.min(WINDOW_SECONDS, seconds / 3) * 1_000
  const first = p99Of(responses.filter(({ dueMs }) => dueMs < windowMs))
  const last = p99Of(responses.filter(({ dueMs }) => dueMs >= seconds * 1_000 - windowMs))
  const growth = memory.map(growthOf)
  return {
    name: 'growth.hour',
    summary: `ingest, reads and replays for ${(seconds / 60).toFixed(0)} min at ${count.toLocaleString('en')} dead letters`,
    details: [
      byMinute(responses, seconds),
      ...roles.map(
        (role, place) =>
          `memory of ${role}: ${median(secondFifth(memory[place] ?? [])).toFixed(0)} MB early, ${median(lastFifth(memory[place] ?? [])).toFixed(0)} MB at the end`,
      ),
      `${sent} dead letters, ${runs} replay runs, ${twice} received twice, ${lost} lost`,
      `${errors.length} errors ${[...new Set(errors)].slice(0, 3).join('; ')}`.trim(),
    ].join('\n'),
    verdicts: [
      judgeFigure({ name: 'p99-last/first', unit: 'x', below: P99_GROWTH }, exactly(last / first)),
      judgeFigure(
        { name: 'memory-growth', unit: 'x', below: MEMORY_GROWTH },
        exactly(Math.max(...growth)),
      ),
      judgeFigure({ name: 'lost', unit: 'records', below: 1 }, exactly(lost)),
      judgeFigure({ name: 'errors', unit: 'requests', below: 1 }, exactly(errors.length)),
    ],
    data: { ...hour, load: { errors, memory } },
  }
}

const exactly = (value: number) => ({ median: value, low: value, high: value })
const p99Of = (some: readonly TimedResponse[]) =>
  quantile(
    some.map(({ ms }) => ms),
    0.99,
  )

const fifthOf = (values: readonly number[]) => Math.max(1, Math.floor(values.length / 5))
const secondFifth = (values: readonly number[]) =>
  values.slice(fifthOf(values), 2 * fifthOf(values))
const lastFifth = (values: readonly number[]) => values.slice(-fifthOf(values))
const growthOf = (values: readonly number[]) =>
  median(lastFifth(values)) / median(secondFifth(values))

/** At most twelve rows. */
function byMinute(responses: readonly TimedResponse[], seconds: number): string {
  const step = (seconds * 1_000) / Math.min(12, Math.ceil(seconds / 60) * 4)
  const starts = Array.from({ length: Math.round((seconds * 1_000) / step) }, (_, at) => at * step)
  const rows = starts.map((start) => {
    const some = responses.filter(({ dueMs }) => dueMs >= start && dueMs < start + step)
    const times = some.map(({ ms }) => ms)
    const ms = (portion: number) => quantile(times, portion).toFixed(1)
    return [(start / 60_000).toFixed(1), String(some.length), ms(0.5), ms(0.95), ms(0.99), ms(1)]
  })
  return aligned([['minute', 'requests', 'p50 ms', 'p95', 'p99', 'maximum'], ...rows])
}
