import type { Figures, Found, Verdict, Violation } from './evidence.ts'
import type { Entry } from './history.ts'

export interface Result extends Verdict {
  readonly scenario: string
  readonly seconds: number
  /** Figures that only this scenario has. */
  readonly told: string
  readonly folder: string
}

export const isGood = ({ violations }: Result): boolean => violations.length === 0

const COLUMNS: readonly (keyof Figures)[] = [
  'attempted',
  'acknowledged',
  'ok',
  'lost',
  'duplicated',
  'recovered',
  'unexpected',
]

/** One scenario in one line. */
export function lineOf(result: Result): string {
  const { figures } = result
  const { bound, effectDuplicates, falseDeadLetters } = figures
  const counts = COLUMNS.map((name) => `${name} ${figures[name]}`).join(' ')
  return `${isGood(result) ? 'ok' : 'FAIL'} ${result.scenario}: ${counts} | bound ${bound}, effect duplicates ${effectDuplicates}, false dead letters ${falseDeadLetters}, recovery ${recoveryIn(figures)}${result.told === '' ? '' : `, ${result.told}`}, ${result.seconds.toFixed(0)} s in all`
}

function recoveryIn({ recoverySeconds }: Figures): string {
  return recoverySeconds === undefined ? 'never' : `${recoverySeconds.toFixed(1)} s`
}

/** Five are enough to see what they have in common. */
const EXAMPLES = 5
/** The rest of a long story is in the file. */
const LINES = 12

/** What broke, with the story of the first few messages and where they were found. */
export function explain(
  { violations, folder }: Result,
  entries: readonly Entry[],
  found: readonly Found[],
): string {
  const rules = Map.groupBy(violations, ({ rule }) => rule)
  const parts = [...rules].map(([rule, broken]) => {
    const examples = broken.slice(0, EXAMPLES).map((one) => exampleOf(one, entries, found))
    return `  ${broken.length} × ${rule}\n${examples.join('\n')}`
  })
  return `${parts.join('\n')}\n  the whole history: ${folder}`
}

function exampleOf(
  { id, text }: Violation,
  entries: readonly Entry[],
  found: readonly Found[],
): string {
  if (id === undefined) return `    ${text}`
  const story = entries.filter((entry) => 'id' in entry && entry.id === id).slice(0, LINES)
  const places = found.filter((one) => one.id === id)
  return [
    `    ${id}: ${text}`,
    ...story.map((entry) => `      ${JSON.stringify(entry)}`),
    ...places.map(({ queue, reason }) => `      found in ${queue} (${reason ?? 'no reason'})`),
  ].join('\n')
}

/** All scenarios as a table, for the end of a run. */
export function tableOf(results: readonly Result[]): string {
  const head = ['scenario', ...COLUMNS, 'bound', 'effect dup.', 'false DL', 'recovery', 'verdict']
  const rows = results.map((result) => {
    const { figures } = result
    return [
      result.scenario,
      ...COLUMNS.map((name) => String(figures[name])),
      String(figures.bound),
      String(figures.effectDuplicates),
      String(figures.falseDeadLetters),
      recoveryIn(figures),
      isGood(result) ? 'PASS' : 'FAIL',
    ]
  })
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => (row[column] ?? '').length)),
  )
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return lines.join('\n')
}
