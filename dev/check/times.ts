/**
 * Durations of steps, proofs and test files. `node dev/check/times.ts FILE` prints the table of a file
 * that several programs wrote to (REDRIVE_TIMES), and the slowest test files of the last test run.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { isMain, ROOT } from './workspace.ts'

export interface Timing {
  readonly name: string
  readonly seconds: number
}

export const TEST_REPORT: string = join(ROOT, '.reports/tests.json')

const SLOWEST_FILES = 20

/** Adds a duration to the file that REDRIVE_TIMES names, for a table over several programs. */
export function recordTiming({ name, seconds }: Timing): void {
  const file = process.env['REDRIVE_TIMES']
  if (file !== undefined) appendFileSync(join(ROOT, file), `${name}\t${seconds.toFixed(1)}\n`)
}

/** Returns `12.3 s` below two minutes and `3 min 20 s` above. */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`
}

/** Marks a background step. It does not count towards the total. */
export const ASIDE = '(in the background)'

/** Returns a table, slowest first, with the total in the last line. */
export function timesTable(title: string, times: readonly Timing[]): string {
  const rows = times.toSorted((a, b) => b.seconds - a.seconds)
  const counted = times.filter(({ name }) => !name.includes(ASIDE))
  const total = { name: 'total', seconds: counted.reduce((sum, { seconds }) => sum + seconds, 0) }
  const lines = [...rows, total].map(
    ({ name, seconds }) => `${formatSeconds(seconds).padStart(13)}  ${name}`,
  )
  return [title, ...lines].join('\n')
}

interface TestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly startTime: number
    readonly endTime: number
  }[]
}

/** Returns the slowest files of a JSON report of vitest; empty without a report. */
export function slowestFiles(path: string = TEST_REPORT, count: number = SLOWEST_FILES): string {
  if (!existsSync(path)) return ''
  const report = readReport(path)
  // The table of times follows this text, so a report that is not complete must not be an exception.
  return typeof report === 'string' ? report : slowest(report, count)
}

/** Returns the report, or a text about the error when vitest was stopped while it wrote the file. */
function readReport(path: string): TestReport | string {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as TestReport
  } catch (error) {
    return `No times of test files: ${path} is not complete (${String(error)})`
  }
}

function slowest({ testResults }: TestReport, count: number): string {
  const lines = testResults
    .map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1_000 }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, count)
    .map(({ name, seconds }) => `${formatSeconds(seconds).padStart(13)}  ${relative(ROOT, name)}`)
  return [`Slowest test files (of ${testResults.length})`, ...lines].join('\n')
}

function readTimings(path: string): Timing[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const [name = '', seconds = ''] = line.split('\t')
    return { name, seconds: Number(seconds) }
  })
}

if (isMain(import.meta)) {
  console.log(`\n${slowestFiles()}\n`)
  console.log(timesTable('Time of each step', readTimings(process.argv[2] ?? '')))
}
