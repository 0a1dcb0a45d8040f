import type { Run } from '@redrive/api'
import { ITEM_STATES, OVERRIDES } from '@redrive/api/words'
import type { Io } from '../io.ts'
import type { Page } from '../text/page.ts'
import { bold, green, type Printable, red, yellow } from '../text/painted.ts'
import { counted, duration, moment, number, relative } from '../text/words.ts'

type Counts = Run['counts']
export type ItemState = keyof Counts

/** Why an item is kept out, for people; `--override` takes the first word of some. */
const REASONS: Readonly<Record<string, string>> = {
  not_open: 'already dealt with',
  in_run: 'in another run',
  elsewhere: 'from elsewhere',
  quarantined: 'quarantined',
  too_old: 'too old',
  forgotten: 'older than the inbox remembers',
  too_many_cycles: 'replayed too often',
  failing_again: 'failed again within the hour',
  not_changeable: 'cannot be changed like this',
  invalid: 'does not match the schema',
  changed: 'changed since the plan',
}

export const sum = (counts: Counts, states: readonly ItemState[]): number =>
  states.reduce((total, state) => total + counts[state], 0)

/** What a run is about: all that was not skipped. */
export const IN_RUN: readonly ItemState[] = ITEM_STATES.filter((state) => state !== 'skipped')

/** Nothing more happens to these in this run. */
export const SETTLED: readonly ItemState[] = [
  'resolved',
  'refailed',
  'unknown',
  'expired',
  'cancelled',
]

/** What was frozen, what would go out, and how. */
export function planText(page: Page, run: Run): void {
  const { counts, skipped, options } = run
  const total = sum(counts, [...IN_RUN, 'skipped'])
  const ready = sum(counts, IN_RUN)
  const parts = [
    `${number(ready)} ready`,
    ...Object.entries(skipped).map(([why, count]) => `${number(count)} ${REASONS[why] ?? why}`),
  ]
  page.line`${number(total)} selected of ${run.source} (frozen ${clock(run.plannedAt)})   ${parts.join(' · ')}`
  const ramp = options.ramp.length === 0 ? '' : `canary ${options.ramp.join(' → ')}, then `
  const time = duration((ready / options.ratePerSecond) * 1_000)
  if (ready > 0)
    page.line`${ramp}${options.ratePerSecond}/s, about ${time}${run.isChanged ? ', with a change of what goes out' : ''}.`
  const passable = OVERRIDES.filter((gate) => (skipped[gate] ?? 0) > 0)
  if (passable.length > 0)
    page.line`To let them through all the same, plan again with: --override ${passable.join(' ')}`
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
      pausedAt === undefined ? undefined : by(run.pausedBecause ?? 'no reason given', pausedAt),
    ],
    ['Ended', endedAt === undefined ? undefined : moment(endedAt)],
    ['Rate', `${options.ratePerSecond}/s, canary ${options.ramp.join(' → ') || 'none'}`],
    ['Stops at', `${Math.round(options.refailLimit * 100)} % refailed`],
    ['Overrides', options.overrides.join(', ')],
    ['Changes', run.isChanged ? yellow('what goes out is not what came in') : undefined],
    ['Outcomes', outcomesOf(run)],
  ])
}

export function stateOf({ state }: Run): Printable {
  if (state === 'done') return green(state)
  return state === 'paused' || state === 'lapsed' ? yellow(state) : state
}

const outcomesOf = ({ counts }: Run): string =>
  (Object.entries(counts) as [ItemState, number][])
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${number(count)} ${state}`)
    .join(' · ')

/** At the end: what became of all of them, and what is left to do. */
export function endText(page: Page, run: Run): void {
  const { counts, state, id } = run
  const how = state === 'done' ? green('Done') : bold(`Run ${state}`)
  page.line`${how}: ${outcomesOf(run)}`
  if (counts.refailed > 0) {
    page.line`${red(counted(counts.refailed, 'message'))} failed again and ${counts.refailed === 1 ? 'is' : 'are'} open as before. See why: redrive replay show ${id} --items refailed`
  }
  if (counts.unknown > 0) {
    page.line`${yellow(counted(counts.unknown, 'outcome'))} unknown: sent, and nobody said what became of it. Look at the consumer, then: redrive decide --as resolved|open ID… (ids: redrive replay show ${id} --items unknown --jsonl)`
  }
  if (counts.expired > 0)
    page.line`${counted(counts.expired, 'message')} too old by the time of ${counts.expired === 1 ? 'its' : 'their'} turn. Plan again with --max-age.`
  if (counts.cancelled > 0)
    page.line`${counted(counts.cancelled, 'message')} never sent. To go on, plan again.`
}
