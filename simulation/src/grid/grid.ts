import { formatDuration, resolvePolicy } from '@redrive/core'
import { simulateOutage, type StormResult } from '@redrive/storm'
import { drainRatio, GOALS, PROCESSES } from '@redrive/storm/internal'
import { type BoundInput, falseShare, impossibility, neededFailures } from './bounds.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

interface GridSize {
  readonly arrivals: readonly number[]
  readonly consumers: readonly number[]
  readonly timeoutsMs: readonly number[]
  readonly outagesMs: readonly number[]
}

const FULL: GridSize = {
  arrivals: [1, 2, 5, 10, 20, 30, 50, 100, 500],
  consumers: [1, 10, 100, 1_000],
  timeoutsMs: [SECOND, 30 * SECOND],
  outagesMs: [30 * SECOND, 5 * MINUTE, 60 * MINUTE],
}

/** The rates at which each process alone is near its lowest limit, and outages of seconds to play. */
const QUICK: GridSize = {
  arrivals: [1, 2, 5, 10, 20, 30, 50, 100],
  consumers: [1, 100],
  timeoutsMs: FULL.timeoutsMs,
  outagesMs: [30 * SECOND, 5 * MINUTE],
}

/** The dependency serves half as much again as arrives. */
const CAPACITY_SHARE = 1.5
const SEED = 1

export interface Cell {
  readonly arrivals: number
  readonly consumers: number
  readonly timeoutMs: number
  readonly outageMs: number
}

/** A cell that was played, and how it compares with its goals. */
export interface PlayedCell {
  readonly cell: Cell
  readonly result: StormResult
  /** Most attempts per message that the cell may have: the goal, or the bound when it is higher. */
  readonly attemptsBound: number
  readonly verdict: Verdict
  /** Why the cell cannot meet the goals, or which goals it missed. */
  readonly why: string
}

export type Verdict =
  /** All goals are met. */
  | 'ok'
  /** More attempts than the goal, but no more than the policy needs to notice the outage and its end. */
  | 'bound'
  /** No limit of one attempt or more for each process can meet the goals. Only false dead letters are judged. */
  | 'cannot'
  | 'SHORT'

export interface GridCommand {
  /** Whether to play the cells for CI instead of all. */
  readonly quick: boolean
  readonly print: (text: string) => void
}

/** Plays every cell with the default policy. Returns true when each meets its goals or its bounds. */
export async function runGrid({ quick, print }: GridCommand): Promise<boolean> {
  const startedAt = performance.now()
  const cells = cellsOf(quick ? QUICK : FULL)
  const played: PlayedCell[] = []
  print(HEADER)
  for (const cell of cells) {
    const one = await playCell(cell)
    played.push(one)
    print(rowText(one, `[${played.length}/${cells.length}]`))
  }
  for (const line of summaryOf(played)) print(line)
  const count = (verdict: Verdict) => played.filter((one) => one.verdict === verdict).length
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const isGood = count('SHORT') === 0
  print(
    `${isGood ? 'PASS' : 'SHORT'} storm --grid ${count('SHORT')} of ${cells.length} cells fell short in ${seconds} s (${count('ok')} meet all goals, ${count('bound')} their bound, ${count('cannot')} cannot), goal 0`,
  )
  return isGood
}

function cellsOf({ arrivals, consumers, timeoutsMs, outagesMs }: GridSize): readonly Cell[] {
  return timeoutsMs.flatMap((timeoutMs) =>
    outagesMs.flatMap((outageMs) =>
      arrivals.flatMap((rate) =>
        consumers.map((count) => ({ arrivals: rate, consumers: count, timeoutMs, outageMs })),
      ),
    ),
  )
}

export async function playCell(cell: Cell): Promise<PlayedCell> {
  const { arrivals, consumers, timeoutMs, outageMs } = cell
  const capacityPerSecond = arrivals * CAPACITY_SHARE
  const result = await simulateOutage({
    policy: { timeout: timeoutMs },
    kind: 'refuse',
    outageMs,
    concurrency: consumers,
    arrivalsPerSecond: arrivals,
    capacityPerSecond,
    seed: SEED,
  })
  const bound: BoundInput = {
    policy: resolvePolicy({ timeout: timeoutMs }),
    processes: Math.min(PROCESSES, consumers),
    arrivalsPerSecond: arrivals,
    capacityPerSecond,
    outageMs,
  }
  return judge(cell, result, bound)
}

/** Compares a cell with its goals and bounds. */
export function judge(cell: Cell, result: StormResult, bound: BoundInput): PlayedCell {
  const needed = 1 + neededFailures(bound) / result.messages
  const attemptsBound = Math.max(GOALS.attemptsPerMessage, needed)
  const drain = drainRatio(result)
  const missed: string[] = []
  const cannot = impossibility(bound)
  const falseBound = cannot === undefined ? GOALS.falseDeadLetters : falseShare(bound.policy)
  if (result.falseDeadLetters > falseBound) missed.push('false dead letters')
  if (cannot === undefined) {
    if (result.attemptsPerMessage > attemptsBound) missed.push('attempts')
    if (drain === undefined || drain > GOALS.drain) missed.push('drain')
  }
  const played = { cell, result, attemptsBound }
  if (missed.length > 0) return { ...played, verdict: 'SHORT', why: missed.join(', ') }
  if (cannot !== undefined) return { ...played, verdict: 'cannot', why: cannot }
  if (result.attemptsPerMessage <= GOALS.attemptsPerMessage)
    return { ...played, verdict: 'ok', why: '' }
  const why = `${neededFailures(bound)} runs notice the outage and its end, for ${result.messages} messages`
  return { ...played, verdict: 'bound', why }
}

const COLUMNS = [11, 10, 11, 9, 9, 10, 8, 7, 8, 8] as const
const HEADER = lineOf([
  'CELL',
  'ARRIVALS',
  'CONSUMERS',
  'TIMEOUT',
  'OUTAGE',
  'ATTEMPTS',
  'BOUND',
  'FALSE',
  'DRAIN',
  'VERDICT',
])

function rowText({ cell, result, attemptsBound, verdict, why }: PlayedCell, number: string) {
  return lineOf([
    number,
    `${cell.arrivals}/s`,
    String(cell.consumers),
    formatDuration(cell.timeoutMs),
    formatDuration(cell.outageMs),
    result.attemptsPerMessage.toFixed(3),
    attemptsBound.toFixed(3),
    String(Math.round(result.falseDeadLetters * result.messages)),
    drainText(result),
    why === '' ? verdict : `${verdict}: ${why}`,
  ])
}

const drainText = (result: StormResult) => drainRatio(result)?.toFixed(2) ?? 'never'

function lineOf(cells: readonly string[]): string {
  return cells
    .map((cell, index) => cell.padEnd(COLUMNS[index] ?? 0))
    .join('')
    .trimEnd()
}

/** Returns one Markdown table for each timeout and outage: attempts per message and drain / minimum. */
function summaryOf(played: readonly PlayedCell[]): readonly string[] {
  const groups = Map.groupBy(played, ({ cell }) => `${cell.timeoutMs} ${cell.outageMs}`)
  return [...groups.values()].flatMap((group) => tableOf(group))
}

function tableOf(group: readonly PlayedCell[]): readonly string[] {
  const [first] = group
  if (first === undefined) return []
  const rows = Map.groupBy(group, ({ cell }) => cell.arrivals)
  const consumers = [...new Set(group.map(({ cell }) => cell.consumers))]
  return [
    `\nTimeout ${formatDuration(first.cell.timeoutMs)}, outage ${formatDuration(first.cell.outageMs)}:\n`,
    `| arrivals | ${consumers.map((count) => `K = ${count}`).join(' | ')} |`,
    `|---|${consumers.map(() => '---|').join('')}`,
    ...[...rows].map(
      ([rate, cells]) => `| ${rate}/s | ${cells.map((one) => cellText(one)).join(' | ')} |`,
    ),
    '',
  ]
}

const MARKS: Record<Verdict, string> = { ok: '', bound: ' †', cannot: ' ‡', SHORT: ' SHORT' }

const cellText = ({ result, verdict }: PlayedCell) =>
  `${result.attemptsPerMessage.toFixed(2)}, ${drainText(result)}${MARKS[verdict]}`
