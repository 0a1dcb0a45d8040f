// Figures that are judged by a limit instead of a comparison with another candidate. Pure.
import type { Estimate } from './stats.ts'

export interface Limit {
  /** Name in the verdict line: `retry-confirm.p99`. */
  readonly name: string
  readonly unit: 'ms' | 'MB' | 'MB/min' | 'records' | 'requests' | 'x' | ''
  readonly below: number
}

export type GaugeVerdict =
  | {
      readonly kind: 'met' | 'missed' | 'undecided'
      readonly limit: Limit
      readonly figure: Estimate
    }
  | { readonly kind: 'noisy' | 'unmeasured'; readonly limit: Limit; readonly why: string }

export interface Gauge {
  /** Name in the verdict line: `rabbitmq.latency`. */
  readonly name: string
  readonly summary: string
  /** The figures behind the verdicts, as text. */
  readonly details: string
  readonly verdicts: readonly GaugeVerdict[]
  /** The figures for `--json`. */
  readonly data?: unknown
}

/**
 * Judges a figure as ratios are judged: met when the whole interval is below the limit, undecided
 * when only the figure is.
 */
export function judgeFigure(limit: Limit, figure: Estimate): GaugeVerdict {
  if (figure.high < limit.below) return { kind: 'met', limit, figure }
  return { kind: figure.median < limit.below ? 'undecided' : 'missed', limit, figure }
}
