import type { Run } from '@redrive/api'
import { ITEM_STATES, OVERRIDES } from '@redrive/api/enums'
import type { Io } from '../io.ts'
import type { Page } from '../text/page.ts'
import { bold, green, type Printable, red, yellow } from '../text/painted.ts'
import { counted, duration, moment, number, relative } from '../text/format.ts'

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
  'expired',
  'cancelled',
]

/** Prints the frozen selection, what would be replayed, and how. */
export function planText(page: Page, run: Run): void {
  const { counts, skipped, options } = run
  const total = sum(counts, [...IN_RUN, 'skipped'])
  const ready = sum(counts, IN_RUN)
  const parts = [
    `${number(ready)} ready`,
    ...Object.entries(skipped).map(([why, count]) => `${number(count)} ${REASONS[why] ?? why}`),
  ]
  page.line`${number(total)} selected from ${run.source} (frozen ${clock(run.plannedAt)})   ${parts.join(' · ')}`
  const canary = options.canary.length === 0 ? '' : `canary ${options.canary.join(' → ')}, then `
  const time = duration((ready / options.ratePerSecond) * 1_000)
  if (ready > 0)
    page.line`${canary}${options.ratePerSecond}/s, about ${time}${run.isChanged ? ', with changed messages' : ''}.`
  const passable = OVERRIDES.filter((gate) => (skipped[gate] ?? 0) > 0)
  if (passable.length > 0)
    page.line`To replay them anyway, plan again with: --override ${passable.join(' ')}`
}

const clock = (at: number): string => moment(at).slice(11, 19)

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
    ['Ended', endedAt === undefined ? undefined : moment(endedAt)],
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

const outcomesOf = ({ counts }: Run): string =>
  (Object.entries(counts) as [ItemState, number][])
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${number(count)} ${state}`)
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
    page.line`${yellow(counted(counts.unknown, 'outcome'))} unknown: published without a confirmation. Check the consumer, then run: redrive set-outcome --as resolved|open ID… (list the ids: redrive replay show ${id} --items unknown --jsonl)`
  }
  if (counts.expired > 0)
    page.line`${counted(counts.expired, 'message')} not published: too old when ${counts.expired === 1 ? 'its' : 'their'} turn came. Plan again with a longer --max-age.`
  if (counts.cancelled > 0)
    page.line`${counted(counts.cancelled, 'message')} not published: cancelled. To replay ${counts.cancelled === 1 ? 'it' : 'them'}, plan again.`
}
