import type { RunOptions } from './options.ts'
import type { ItemCounts } from './runs.ts'

/** What was seen of a run lately; since it was approved or resumed. */
export interface Lately {
  /** Of the latest that have a proof; where nobody proves anything, of the latest that are out. */
  readonly settled: number
  readonly refailed: number
  /** The longest a proof took. */
  readonly slowestMs: number
  /** Since anything was proven, or since the start. */
  readonly quietMs: number
  /** How long the oldest that is out has been without a proof. */
  readonly unprovenMs: number
}

/** The latest 50: enough to tell a share from bad luck, few enough to notice at once. */
export const LATEST = 50
/** 10 before a share says anything; in the ramp everyone counts. */
const ENOUGH = 10
/** 0.95 % of the run may be without a proof: what a downstream gets that breaks now, which must stay below 1 %. */
const UNPROVEN_SHARE = 0.0095
/** 50 at least, as the last stage of the ramp: a small run must not wait for each proof. */
const UNPROVEN_MIN = 50
/** 3 s without any proof, or three times as long as the slowest took. */
const STALL_MS = 3_000
const STALL_FACTOR = 3

/** How many more may go out now, or why the run has to pause: at once, or if nobody finds a proof. */
export type Judgement =
  | { readonly go: number }
  | { readonly pause: string }
  | { readonly stalled: string }

export function judge(counts: ItemCounts, options: RunOptions, lately: Lately): Judgement {
  const { settled, refailed } = lately
  const isRamping = stageOf(counts, options) !== undefined
  if (refailed > options.refailLimit * settled && (isRamping || settled >= ENOUGH)) {
    return { pause: `${refailed} of the latest ${settled} failed again.` }
  }
  const stage = stageOf(counts, options)
  if (stage !== undefined) return rampJudgement(stage, counts, options)
  if (options.unproven === 'go_on') return { go: counts.queued }
  const total = sumOf(counts)
  const room = Math.max(UNPROVEN_MIN, Math.floor(total * UNPROVEN_SHARE)) - inFlight(counts)
  const patienceMs = Math.max(STALL_MS, STALL_FACTOR * lately.slowestMs)
  if (room <= 0 && Math.min(lately.quietMs, lately.unprovenMs) > patienceMs) {
    const seconds = Math.round(lately.quietMs / 1_000)
    return {
      stalled: `No proof came for ${seconds} s: the consumers are stuck, or their downstream is.`,
    }
  }
  return { go: Math.max(0, Math.min(room, counts.queued)) }
}

interface Stage {
  /** How many may be out by the end of it. */
  readonly until: number
}

const settledOf = ({ resolved, refailed, unknown, expired }: ItemCounts) =>
  resolved + refailed + unknown + expired
const inFlight = ({ claimed, publishing, published }: ItemCounts) =>
  claimed + publishing + published
const sumOf = (counts: ItemCounts) => counts.queued + inFlight(counts) + settledOf(counts)

/** The stage of the ramp that is not over: a stage is over when everyone of it has an outcome. */
function stageOf(counts: ItemCounts, { ramp }: RunOptions): Stage | undefined {
  const settled = settledOf(counts)
  let until = 0
  for (const size of ramp) {
    until += size
    if (settled < until) return { until }
  }
  return undefined
}

function rampJudgement(stage: Stage, counts: ItemCounts, { unproven }: RunOptions): Judgement {
  if (counts.unknown > 0 && unproven === 'pause') {
    return {
      pause: `${counts.unknown} of the first have no proof in time. Find out what became of them and say so (redrive decide), then resume; if the consumers do not use Redrive, plan with unproven: 'go_on'.`,
    }
  }
  const out = inFlight(counts) + settledOf(counts)
  return { go: Math.max(0, Math.min(stage.until - out, counts.queued)) }
}
