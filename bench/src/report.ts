// Formats measured and judged results as text, for people and for CI.
import type { Gauge, GaugeVerdict } from './gauge.ts'
import type { Measurement, Series } from './harness.ts'
import type { Machine } from './machine.ts'
import { type Estimate, median, quantile } from './stats.ts'
import { ratioOf, type SelfCheck, type Verdict } from './verdict.ts'

const HEADINGS = ['candidate', 'wall ns/msg', 'quartiles', 'x base', '95 %', 'cpu ns/msg', 'cpu x']

export function machineLine({ cpu, cores, node, platform, loadAverage }: Machine): string {
  const load = loadAverage.map((value) => value.toFixed(2)).join(' ')
  return `${cpu}, ${cores} cores, node ${node}, ${platform}, load average ${load}`
}

/** Returns one row per candidate, with ratios against `baseline`. */
export function table({ series }: Measurement, baseline: string): string {
  const base = series.find(({ name }) => name === baseline)
  if (base === undefined) throw new Error(`No candidate "${baseline}" exists to compare with`)
  return aligned([HEADINGS, ...series.map((each) => row(each, base))])
}

function row(each: Series, base: Series): string[] {
  const wall = ratioOf(each, base, 'wallNs')
  return [
    each.name,
    cost(median(each.wallNs)),
    `${cost(quantile(each.wallNs, 0.25))}-${cost(quantile(each.wallNs, 0.75))}`,
    factor(wall.median),
    range(wall),
    cost(median(each.cpuNs)),
    factor(ratioOf(each, base, 'cpuNs').median),
  ]
}

export function selfCheckLine(twinOf: string, check: SelfCheck): string {
  const { low, high, reason } = check.range
  const place = check.passed ? 'within' : 'OUTSIDE'
  const figure = `${factor(check.ratio.median)} [${range(check.ratio)}]`
  return `A/A ${unit(check.metric)} of "${twinOf}": ${figure}, ${place} ${low}-${high} (${reason})`
}

export interface Judged {
  readonly name: string
  readonly verdicts: readonly Verdict[]
}

/** Returns the verdict lines, aims first: the exit code repeats the last lines. */
export function verdictLines(judged: readonly Judged[]): string[] {
  const all = judged.flatMap(({ name, verdicts }) => verdicts.map((verdict) => ({ name, verdict })))
  const aims = all.filter(({ verdict }) => verdict.goal.aim)
  const goals = all.filter(({ verdict }) => !verdict.goal.aim)
  return [...aims, ...goals].map(({ name, verdict }) => verdictLine(name, verdict))
}

/** Returns `PASS|SHORT name figure goal`. An aim starts with "aim:" and never fails a run. */
function verdictLine(comparison: string, verdict: Verdict): string {
  const { goal } = verdict
  const word = verdict.kind === 'met' ? 'PASS' : 'SHORT'
  const name = `${comparison}:${goal.name}`
  const limit = `${unit(goal.metric)}<=${factor(goal.atMost)}x`
  return `${goal.aim ? 'aim: ' : ''}${word} ${name} ${figureOf(verdict)} ${limit}`
}

function figureOf(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'met':
    case 'missed':
      return `${factor(verdict.ratio.median)}x[${range(verdict.ratio)}]`
    case 'undecided':
      return `${factor(verdict.ratio.median)}x[${range(verdict.ratio)}] undecided: more rounds needed`
    case 'noisy':
      return `noisy: A/A ${factor(verdict.selfCheck.ratio.median)}`
    case 'unmeasured':
      return `not measured: no candidate "${verdict.missing}"`
  }
}

/** Returns `PASS|SHORT name figure limit`, as for a ratio. */
export function gaugeLines({ name, verdicts }: Gauge): string[] {
  return verdicts.map((verdict) => {
    const { limit } = verdict
    const word = verdict.kind === 'met' ? 'PASS' : 'SHORT'
    return `${word} ${name}:${limit.name} ${gaugeFigure(verdict)} <${limit.below}${limit.unit}`
  })
}

function gaugeFigure(verdict: GaugeVerdict): string {
  if ('why' in verdict)
    return `${verdict.kind === 'noisy' ? 'noisy' : 'not measured'}: ${verdict.why}`
  const { figure, limit, kind } = verdict
  const doubt = kind === 'undecided' ? ' undecided: a longer run is needed' : ''
  // Differences may be negative, and a hyphen would look like a sign.
  const interval = `${factor(figure.low)} to ${factor(figure.high)}`
  return `${factor(figure.median)}${limit.unit}[${interval}]${doubt}`
}

/**
 * Aligns rows. The first row has the headings; the first column is left-aligned, figures are
 * right-aligned.
 */
export function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => width(row, column))),
  )
  const line = (row: readonly string[]) =>
    widths
      .map((size, column) => pad(row[column] ?? '', size, column === 0))
      .join('  ')
      .trimEnd()
  return rows.map(line).join('\n')
}

function width(row: readonly string[], column: number): number {
  return row[column]?.length ?? 0
}

function pad(text: string, size: number, left: boolean): string {
  return left ? text.padEnd(size) : text.padStart(size)
}

function cost(ns: number): string {
  return ns < 100 ? ns.toFixed(1) : Math.round(ns).toLocaleString('en-US')
}

/** Near a limit the third digit matters; far from it, it does not. */
function factor(value: number): string {
  return value < 10 ? value.toFixed(3) : value.toFixed(1)
}

function range({ low, high }: Estimate): string {
  return `${factor(low)}-${factor(high)}`
}

function unit(metric: 'wallNs' | 'cpuNs'): string {
  return metric === 'wallNs' ? 'wall' : 'cpu'
}
