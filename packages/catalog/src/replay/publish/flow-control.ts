import type { RunOptions } from '../run/options.ts'
import type { ItemCounts } from '../run/states.ts'

/** The recent outcomes of a run, since it was approved or resumed. */
export interface RecentOutcomes {
  /** Number of the latest items with an outcome. If consumers confirm nothing: of the latest published items. */
  readonly settled: number
  /** Number of these items that failed again. */
  readonly failedAgain: number
  /** The longest time from a publish to its outcome. */
  readonly slowestMs: number
  /** Time since the last outcome, or since the start. */
  readonly quietMs: number
  /** Time since the publish of the oldest unconfirmed item. */
  readonly unconfirmedMs: number
}

/** The latest 50: enough for a meaningful share, and few enough to react fast. */
export const LATEST = 50
/** 10 outcomes before a share is meaningful. During the canary, every outcome counts. */
const SETTLED_MIN = 10
/** 0.95 % of the run may be unconfirmed. If a dependency of the consumer breaks, less than 1 % of the run reaches it. */
const UNCONFIRMED_SHARE = 0.0095
/** At least 50, as in the last stage of the canary: a small run must not wait for each confirmation. */
const UNCONFIRMED_MIN = 50
/** 3 s without an outcome, or three times the slowest one, if that is longer. */
const STALL_MS = 3_000
const STALL_FACTOR = 3

/**
 * The number of items to publish now, or the reason to pause. `pause`: pause immediately. `stalled`: read
 * confirmations first, and pause if there are none.
 */
export type FlowDecision =
  | { readonly go: number }
  | { readonly pause: string }
  | { readonly stalled: string }

export function flowDecision(
  counts: ItemCounts,
  options: RunOptions,
  recent: RecentOutcomes,
): FlowDecision {
  const { settled, failedAgain } = recent
  const isInCanary = stageOf(counts, options) !== undefined
  if (failedAgain > options.maxFailureRatio * settled && (isInCanary || settled >= SETTLED_MIN)) {
    const most = Math.round(options.maxFailureRatio * 100)
    return {
      pause: `${failedAgain} of the latest ${settled} messages failed again. The limit is ${most} % (--max-failure-ratio).`,
    }
  }
  const stage = stageOf(counts, options)
  if (stage !== undefined) return canaryDecision(stage, counts, options)
  if (!isConfirmed(options) || options.onUnconfirmed === 'continue') return { go: counts.queued }
  const total = sumOf(counts)
  const room = Math.max(UNCONFIRMED_MIN, Math.floor(total * UNCONFIRMED_SHARE)) - inFlight(counts)
  const patienceMs = Math.max(STALL_MS, STALL_FACTOR * recent.slowestMs)
  if (room <= 0 && Math.min(recent.quietMs, recent.unconfirmedMs) > patienceMs) {
    const seconds = Math.round(recent.quietMs / 1_000)
    return {
      stalled: `No confirmation for ${seconds} s. Check the consumer and its dependencies, then resume. If the consumer confirms nothing, cancel and plan with --proof returns.`,
    }
  }
  return { go: Math.max(0, Math.min(room, counts.queued)) }
}

/** Whether the consumers of a run confirm replays. Runs of older releases have no `proof`. */
export const isConfirmed = ({ proof }: Pick<RunOptions, 'proof'>): boolean => proof !== 'returns'

interface Stage {
  /** Total number of items that may be published by the end of the stage. */
  readonly until: number
}

const settledOf = (counts: ItemCounts) =>
  counts.resolved + counts.failed_again + counts.unknown + counts.not_returned + counts.expired
const inFlight = ({ claimed, publishing, published }: ItemCounts) =>
  claimed + publishing + published
const sumOf = (counts: ItemCounts) => counts.queued + inFlight(counts) + settledOf(counts)

/** Returns the current stage of the canary. A stage ends when all its items have an outcome. */
function stageOf(counts: ItemCounts, { canary }: RunOptions): Stage | undefined {
  const settled = settledOf(counts)
  let until = 0
  for (const size of canary) {
    until += size
    if (settled < until) return { until }
  }
  return undefined
}

function canaryDecision(
  stage: Stage,
  counts: ItemCounts,
  { onUnconfirmed }: RunOptions,
): FlowDecision {
  if (counts.unknown > 0 && onUnconfirmed === 'pause') {
    return {
      pause: `The consumer did not confirm ${counts.unknown} of the first messages in time (--outcome-timeout). Check their effect and set their outcome (redrive set-outcome), then resume. If the consumer confirms nothing, cancel and plan with --proof returns.`,
    }
  }
  const published = inFlight(counts) + settledOf(counts)
  return { go: Math.max(0, Math.min(stage.until - published, counts.queued)) }
}
