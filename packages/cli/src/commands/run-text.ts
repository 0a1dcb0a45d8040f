import type { Run } from '@redrive/api'
import { ITEM_STATES, OVERRIDES } from '@redrive/api/enums'
import type { Io } from '../io.ts'
import type { Page } from '../text/page.ts'
import { bold, green, type Printable, red, yellow } from '../text/painted.ts'
import { counted, duration, isoTime, number, relative } from '../text/format.ts'

type Counts = Run['counts']
export type ItemState = keyof Counts

/** Why an item is skipped, for people. `--override` accepts some of the keys. */
const REASONS: Readonly<Record<string, string>> = {
  not_open: 'not open',
  in_run: 'in another run',
  unknown_origin: 'with an unknown origin',
  quarantined: 'quarantined',
  too_old: 'too old',
  inbox_expired: 'older than the inbox retention',
  too_many_cycles: 'replayed too often',
  failed_recently: 'failed again within the last hour',
  patch_failed: 'where the change cannot be applied',
  schema_invalid: 'not matching the schema',
  not_checked: 'not checked against the schema within the time limit',
  changed: 'changed since the plan',
}

export const sum = (counts: Counts, states: readonly ItemState[]): number =>
  states.reduce((total, state) => total + counts[state], 0)

/** States of the items in a run: all except skipped. */
export const IN_RUN: readonly ItemState[] = ITEM_STATES.filter((state) => state !== 'skipped')

/** Final states of an item in a run. */
export const SETTLED: readonly ItemState[] = [
  'resolved',
  'failed_again',
  'unknown',
  'not_returned',
  'expired',
  'cancelled',
]

/** Prints the frozen selection, what would be replayed, and how. */
export function planText(page: Page, run: Run): void {
  const { counts, skipped } = run
  const total = sum(counts, [...IN_RUN, 'skipped'])
  const ready = sum(counts, IN_RUN)
  const parts = [
    `${number(ready)} ready`,
    ...Object.entries(skipped).map(([why, count]) => `${number(count)} ${REASONS[why] ?? why}`),
  ]
  page.line`${number(total)} selected from ${run.source} (frozen ${clock(run.plannedAt)})   ${parts.join(' · ')}`
  if (ready > 0) proofText(page, run, ready)
  if (run.isChanged) page.line`The replayed messages differ from the originals.`
  const passable = OVERRIDES.filter((gate) => (skipped[gate] ?? 0) > 0)
  if (passable.length > 0)
    page.line`To replay them anyway, plan again with: --override ${passable.join(' ')}`
}

/** Prints what shows the outcomes of the run, its steps and an estimate of its time. */
function proofText(page: Page, run: Run, ready: number): void {
  const { options, source } = run
  const { ratePerSecond, canary } = options
  const time = duration(estimateOf(run, ready))
  if (!isUnproven(run)) {
    const steps = canary.length === 0 ? '' : `canary ${canary.join(' → ')}, then `
    const first = Math.min(ready, canaryOf(run))
    const more =
      first === 0 ? '' : `, plus the time in which the consumer confirms the first ${number(first)}`
    page.line`${steps}${ratePerSecond}/s, about ${time}${more}.`
    return
  }
  const wait = duration(options.outcomeTimeoutMs)
  page.line`${yellow('Outcomes cannot be proven:')} ${WHY_UNPROVEN[options.proofReason ?? '']?.(source) ?? 'the consumer confirms nothing.'}`
  page.line`Redrive watches the dead-letter queue. A message that does not return within ${wait} counts as not returned.`
  const first = Math.min(ready, canaryOf(run))
  const rest = ready - first
  const steps = [
    first === 0 ? undefined : `${counted(first, 'message')} first, then wait ${wait}`,
    rest === 0 ? undefined : `${number(rest)} at ${ratePerSecond}/s, then wait ${wait}`,
  ].filter((step) => step !== undefined)
  page.line`${steps.join('; ')}: about ${time} in total.`
  page.line`Change this with: --outcome-timeout 1m, --canary 1, --rate 100, or --proof confirmations`
}

const WHY_UNPROVEN: Readonly<Partial<Record<string, (source: string) => string>>> = {
  requested: () => 'this run was planned with --proof returns.',
  configured: (source) => `the config sets "proof: returns" for ${source}.`,
  foreign_dead_letters: (source) =>
    `the consumer of ${source} does not use Redrive and has never confirmed a replay.`,
}

/** Returns whether the consumers of a run confirm nothing. */
const isUnproven = ({ options }: Run): boolean => options.proof === 'returns'

/** Returns the number of messages in all stages of the canary. */
const canaryOf = ({ options }: Run): number =>
  options.canary.reduce((total, size) => total + size, 0)

/**
 * Estimates the time of a run in ms. Without confirmations, each stage of the canary and the end of the run wait for
 * messages that return.
 */
function estimateOf(run: Run, ready: number): number {
  const { ratePerSecond, canary, outcomeTimeoutMs } = run.options
  const publishMs = (ready / ratePerSecond) * 1_000
  if (!isUnproven(run)) return publishMs
  let left = ready
  let waits = 0
  for (const size of canary) {
    if (left > 0) waits += 1
    left -= size
  }
  return publishMs + (waits + (left > 0 ? 1 : 0)) * outcomeTimeoutMs
}

const clock = (at: number): string => isoTime(at).slice(11, 19)

export function runFacts(io: Io, page: Page, run: Run): void {
  const { approvedBy, approvedAt, pausedAt, endedAt, options } = run
  const by = (who: string, at: number | undefined) =>
    at === undefined ? who : `${who}, ${relative(io.now(), at)}`
  page.facts([
    ['Run', run.id],
    ['Source', run.source],
    ['State', stateOf(run)],
    ['Hash', run.hash],
    ['Note', run.note],
    ['Planned', by(run.plannedBy, run.plannedAt)],
    ['Approved', approvedBy === undefined ? undefined : by(approvedBy, approvedAt)],
    [
      'Paused',
      pausedAt === undefined ? undefined : by(run.pauseReason ?? 'no reason given', pausedAt),
    ],
    ['Ended', endedAt === undefined ? undefined : isoTime(endedAt)],
    [
      'Proof',
      isUnproven(run)
        ? `none: not returned after ${duration(options.outcomeTimeoutMs)}`
        : 'confirmations',
    ],
    ['Rate', `${options.ratePerSecond}/s, canary ${options.canary.join(' → ') || 'none'}`],
    ['Pause at', `${Math.round(options.maxFailureRatio * 100)} % failed again`],
    ['Overrides', options.overrides.join(', ')],
    [
      'Changes',
      run.isChanged ? yellow('the replayed messages differ from the originals') : undefined,
    ],
    ['Outcomes', outcomesOf(run)],
  ])
}

export function stateOf({ state }: Run): Printable {
  if (state === 'done') return green(state)
  return state === 'paused' || state === 'plan_expired' ? yellow(state) : state
}

/** The states of items, for people. */
const WORDS: Partial<Readonly<Record<ItemState, string>>> = {
  published: 'sent',
  failed_again: 'failed again',
  not_returned: 'not returned',
}

const outcomesOf = ({ counts }: Run): string =>
  (Object.entries(counts) as [ItemState, number][])
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${number(count)} ${WORDS[state] ?? state}`)
    .join(' · ')

/** Prints the outcomes of an ended run and what is left to do. */
export function endText(page: Page, run: Run): void {
  const { counts, state, id } = run
  const how = state === 'done' ? green('Done') : bold(`Run ${state}`)
  page.line`${how}: ${outcomesOf(run)}`
  if (counts.failed_again > 0) {
    page.line`${red(counted(counts.failed_again, 'message'))} failed again and ${counts.failed_again === 1 ? 'is' : 'are'} open again. See why: redrive replay show ${id} --items failed_again`
  }
  if (counts.unknown > 0) {
    page.line`${yellow(counted(counts.unknown, 'outcome'))} unknown: published without a confirmation. Check the consumer, then run: redrive set-outcome --as resolved|open --run ${id} (list them: redrive replay show ${id} --items unknown)`
  }
  if (counts.not_returned > 0) {
    page.line`${counted(counts.not_returned, 'message')} sent and not returned within ${duration(run.options.outcomeTimeoutMs)}. Redrive cannot prove that the consumer handled ${counts.not_returned === 1 ? 'it' : 'them'}. If ${counts.not_returned === 1 ? 'it' : 'they'} had no effect: redrive set-outcome --as open --run ${id}`
  }
  if (counts.expired > 0)
    page.line`${counted(counts.expired, 'message')} not published: too old when ${counts.expired === 1 ? 'its' : 'their'} turn came. Plan again with a longer --max-age.`
  if (counts.cancelled > 0)
    page.line`${counted(counts.cancelled, 'message')} not published: cancelled. To replay ${counts.cancelled === 1 ? 'it' : 'them'}, plan again.`
}
