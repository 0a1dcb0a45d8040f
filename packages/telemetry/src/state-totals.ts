import type { OwnedState } from './from-state.ts'
import { type Measurement, type MetricName, rowOf } from './metrics.ts'

/** How several consumers or emitters with the same labels become one series. Absent: the sum. */
const MERGED: Readonly<Partial<Record<MetricName, (one: number, other: number) => number>>> = {
  'redrive.consumer.connected': Math.min,
  'redrive.consumer.health': Math.min,
  'redrive.consumer.unproven_age': Math.max,
  'redrive.circuit_breaker.state': Math.max,
  'redrive.emitter.breaker_state': Math.max,
}

const sum = (one: number, other: number) => one + other
const isCounter = ({ metric }: Measurement) => rowOf(metric).kind === 'counter'

/**
 * Makes one series of each set of labels. The counts of consumers and emitters that have ended stay in
 * the totals, because a counter must not decrease.
 */
export class StateTotals {
  readonly #lastCounts = new Map<object, readonly Measurement[]>()
  readonly #ended = new Map<string, Measurement>()

  /** Returns the series of the current state. */
  read(states: readonly OwnedState[]): readonly Measurement[] {
    this.#keepEnded(new Set(states.map(({ owner }) => owner)))
    const series = new Map(this.#ended)
    for (const { owner, measurements } of states) {
      this.#lastCounts.set(owner, measurements.filter(isCounter))
      for (const one of measurements) addTo(series, one)
    }
    return [...series.values()]
  }

  #keepEnded(living: ReadonlySet<object>): void {
    for (const [owner, counts] of this.#lastCounts) {
      if (living.has(owner)) continue
      for (const one of counts) addTo(this.#ended, one)
      this.#lastCounts.delete(owner)
    }
  }
}

function addTo(series: Map<string, Measurement>, next: Measurement): void {
  const key = seriesKey(next)
  const before = series.get(key)
  const merge = MERGED[next.metric] ?? sum
  const value = before === undefined ? next.value : merge(before.value, next.value)
  series.set(key, { ...next, value })
}

/** Identifies a series: the metric and its labels, in the order of the table. */
export function seriesKey({ metric, labels }: Measurement): string {
  return JSON.stringify([metric, ...rowOf(metric).labels.map((label) => labels[label] ?? '')])
}
