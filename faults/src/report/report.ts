import type { Figures, FoundMessage, Violation } from '../evidence/evidence.ts'
import type { Entry } from '../evidence/history.ts'
import { isGood, type Played } from '../harness/scenario.ts'

const COLUMNS: readonly (keyof Figures)[] = [
  'attempted',
  'acknowledged',
  'ok',
  'lost',
  'duplicated',
  'recovered',
  'unexpected',
]

/** Returns the counts of the checker as figures of a result. */
export function figuresOf(counts: Figures): readonly string[] {
  const { bound, effectDuplicates, falseDeadLetters } = counts
  return [
    `${COLUMNS.map((name) => `${name} ${counts[name]}`).join(' ')} | bound ${bound}`,
    `effect duplicates ${effectDuplicates}`,
    `false dead letters ${falseDeadLetters}`,
    `recovery ${recoveryIn(counts)}`,
  ]
}

function recoveryIn({ recoverySeconds }: Figures): string {
  return recoverySeconds === undefined ? 'never' : `${recoverySeconds.toFixed(1)} s`
}

/** Returns one line for a scenario. */
export function lineOf(played: Played): string {
  const { scenario, figures, seconds } = played
  return `${isGood(played) ? 'ok' : 'FAIL'} ${scenario}: ${figures.join(', ')}, ${seconds.toFixed(0)} s in total`
}

/** 20 examples are enough to see what they have in common. */
const EXAMPLES = 20
/** The stories of five messages; the rest is in the history. */
const STORIES = 5
/** The rest of a long story is in the file. */
const LINES = 12

/** Describes the broken rules. */
export function explain({ broken, folder }: Played): string {
  const parts = [...Map.groupBy(broken, ({ rule }) => rule)].map(([rule, all]) => {
    const examples = all
      .slice(0, EXAMPLES)
      .map(({ id, text }) => `    ${id ? `${id}: ` : ''}${text}`)
    return `  ${all.length} × ${rule}\n${examples.join('\n')}`
  })
  return `${parts.join('\n')}\n  files of this scenario: ${folder}`
}

/** Adds the history of the first few messages of each broken rule, and where they were found. */
export function withStories(
  broken: readonly Violation[],
  entries: readonly Entry[],
  found: readonly FoundMessage[],
): readonly Violation[] {
  return [...Map.groupBy(broken, ({ rule }) => rule).values()].flatMap((ofRule) =>
    ofRule.map((one, at) => (at < STORIES ? withStory(one, entries, found) : one)),
  )
}

function withStory(
  violation: Violation,
  entries: readonly Entry[],
  found: readonly FoundMessage[],
): Violation {
  const { id, text } = violation
  if (id === undefined) return violation
  const story = entries.filter((entry) => 'id' in entry && entry.id === id).slice(0, LINES)
  const places = found.filter((one) => one.id === id)
  const lines = [
    ...story.map((entry) => JSON.stringify(entry)),
    ...places.map(({ queue, reason }) => `found in ${queue} (${reason ?? 'no reason'})`),
  ]
  return { ...violation, text: [text, ...lines].join('\n      ') }
}

/** Returns the scenarios that have counts as a table, for the end of a run. */
export function tableOf(all: readonly Played[]): string | undefined {
  const rows = all.flatMap((played) => {
    const { counts } = played
    if (counts === undefined) return []
    const { bound, effectDuplicates, falseDeadLetters } = counts
    const numbers = [
      ...COLUMNS.map((name) => counts[name]),
      bound,
      effectDuplicates,
      falseDeadLetters,
    ]
    const verdict = isGood(played) ? 'PASS' : 'FAIL'
    return [[played.scenario, ...numbers.map(String), recoveryIn(counts), verdict]]
  })
  if (rows.length === 0) return undefined
  const head = ['scenario', ...COLUMNS, 'bound', 'effect dup.', 'false DL', 'recovery', 'verdict']
  return aligned([head, ...rows])
}

/** Returns the rows of the scenarios as a table with these titles. */
export function rowsOf(columns: readonly string[], all: readonly Played[]): string {
  const rows = all.flatMap((played) =>
    played.row === undefined ? [] : [[...played.row, isGood(played) ? 'PASS' : 'FAIL']],
  )
  return aligned([[...columns, 'verdict'], ...rows])
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widthOf = (column: number) => Math.max(...rows.map((row) => (row[column] ?? '').length))
  const lineOfRow = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widthOf(column)))
      .join('  ')
      .trimEnd()
  return rows.map(lineOfRow).join('\n')
}
