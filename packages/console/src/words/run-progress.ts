import type { Run } from '@redrive/api'
import type { Bar } from '../components/bar-chart.tsx'
import type { MeterPart } from '../components/meter.tsx'
import type { ItemState } from './runs.ts'
import { sizeOf } from './runs.ts'

type Counts = Run['counts']

const sum = (counts: Counts, states: readonly ItemState[]) =>
  states.reduce((total, state) => total + counts[state], 0)

/** States of a message with an outcome. */
const SETTLED: readonly ItemState[] = ['resolved', 'failed_again', 'unknown', 'not_returned']

export const settledOf = ({ counts }: Pick<Run, 'counts'>): number => sum(counts, SETTLED)

export const queuedOf = ({ counts }: Pick<Run, 'counts'>): number =>
  sum(counts, ['planned', 'queued', 'claimed'])

export const sentOf = ({ counts }: Pick<Run, 'counts'>): number =>
  sum(counts, ['publishing', 'published'])

/** The outcomes of a run as a bar. */
export const runParts = ({ counts }: Pick<Run, 'counts'>): readonly MeterPart[] => [
  { tone: 'good', count: counts.resolved + counts.not_returned },
  { tone: 'bad', count: counts.failed_again },
  { tone: 'warn', count: counts.unknown },
  { tone: 'run', count: sentOf({ counts }), isOpen: true },
]

export interface Stage {
  readonly size: number
  /** Number of messages of this stage with an outcome. */
  readonly settled: number
  readonly isLast: boolean
}

/** Returns the stages of the canary and the rest, with their outcomes. */
export function stagesOf(run: Pick<Run, 'counts' | 'options'>): readonly Stage[] {
  const total = sizeOf(run)
  const sizes: number[] = []
  let left = total
  for (const size of run.options.canary) {
    if (left <= 0) break
    sizes.push(Math.min(size, left))
    left -= size
  }
  if (left > 0) sizes.push(left)
  let settled = settledOf(run)
  return sizes.map((size, at) => {
    const own = Math.min(size, settled)
    settled -= own
    return { size, settled: own, isLast: at === sizes.length - 1 }
  })
}

/** The number of outcomes at a time. */
export interface Sample {
  readonly at: number
  readonly settled: number
}

const STEP_MS = 2_000
const STEPS = 60

/** Returns the outcomes per second of the last two minutes, from what the page has seen. */
export function ratesOf(samples: readonly Sample[], now: number): readonly Bar[] {
  const end = Math.floor(now / STEP_MS) * STEP_MS
  const at = (time: number) => samples.findLast((one) => one.at <= time)?.settled
  return Array.from({ length: STEPS }, (_, step) => {
    const from = end - (STEPS - step) * STEP_MS
    const before = at(from) ?? samples[0]?.settled ?? 0
    const after = at(from + STEP_MS) ?? before
    return { at: from, count: ((after - before) * 1_000) / STEP_MS }
  })
}
