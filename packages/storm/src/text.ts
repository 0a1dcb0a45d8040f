import { highestOf } from './highest.ts'

/** Options of the plot for a terminal. */
export interface PlotTextOptions {
  /** Calls per second, one value per second. */
  readonly load: readonly number[]
  /** Width of the plot in characters, without labels. */
  readonly columns: number
  readonly rows: number
  readonly arrivalsPerSecond: number
  readonly capacityPerSecond: number
  readonly outageFromS: number
  readonly outageUntilS: number
}

/** Steps of an eighth of a character's height. */
const BARS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const
const EIGHTHS = BARS.length - 1

/** Draws bars for the load, a line at the capacity, and the outage below. */
export function plotText(options: PlotTextOptions): string {
  const { rows, capacityPerSecond, arrivalsPerSecond } = options
  const columns = columnsOf(options)
  const highest = Math.max(capacityPerSecond, ...columns)
  const lines: string[] = []
  for (let row = rows - 1; row >= 0; row--) {
    const low = (row / rows) * highest
    const high = ((row + 1) / rows) * highest
    const holds = (value: number) => value > low && value <= high
    const empty = holds(capacityPerSecond) ? '╌' : holds(arrivalsPerSecond) ? '·' : ' '
    const bars = columns.map((load) => barOf((load - low) / (high - low), empty)).join('')
    lines.push(`${labelOf(options, highest, { row, holds }).padStart(LABEL)} ┤${bars}`)
  }
  return [...lines, outageLine(options, columns.length)].join('\n')
}

const LABEL = 14

function labelOf(
  { rows, capacityPerSecond, arrivalsPerSecond }: PlotTextOptions,
  highest: number,
  { row, holds }: { readonly row: number; readonly holds: (value: number) => boolean },
): string {
  if (holds(capacityPerSecond)) return `capacity ${capacityPerSecond}/s`
  if (holds(arrivalsPerSecond)) return `arrivals ${arrivalsPerSecond}/s`
  return row === rows - 1 ? `${Math.round(highest)}/s` : ''
}

/** Returns the highest value of each span: an average would hide a peak. */
function columnsOf({ load, columns }: PlotTextOptions): readonly number[] {
  const count = Math.min(columns, load.length)
  return Array.from({ length: count }, (_, at) => {
    const from = Math.floor((at / count) * load.length)
    const until = Math.max(from + 1, Math.floor(((at + 1) / count) * load.length))
    return highestOf(load.slice(from, until))
  })
}

function barOf(share: number, empty: string): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * EIGHTHS)
  return eighths === 0 ? empty : (BARS[eighths] ?? empty)
}

function outageLine({ load, outageFromS, outageUntilS }: PlotTextOptions, columns: number): string {
  const columnOf = (second: number) =>
    Math.min(columns, Math.round((second / load.length) * columns))
  const from = columnOf(outageFromS)
  const until = Math.max(from + 1, columnOf(outageUntilS))
  const line = `${'─'.repeat(from)}${'▓'.repeat(until - from)}${'─'.repeat(Math.max(0, columns - until))}`
  return `${'outage'.padStart(LABEL)} └${line}`
}
