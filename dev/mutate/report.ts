/** Reads Stryker's report: https://github.com/stryker-mutator/mutation-testing-elements */

export interface Report {
  readonly files: Readonly<Record<string, { source: string; mutants: readonly Mutant[] }>>
}

interface Mutant {
  readonly mutatorName: string
  readonly replacement?: string
  readonly status: string
  readonly location: { readonly start: Place; readonly end: Place }
}

/** Line and column, both from 1. */
interface Place {
  readonly line: number
  readonly column: number
}

export interface FileScore {
  readonly file: string
  readonly killed: number
  readonly survived: number
  readonly percent: number
}

const isKilled = ({ status }: Mutant) => status === 'Killed' || status === 'Timeout'
const hasSurvived = ({ status }: Mutant) => status === 'Survived' || status === 'NoCoverage'

/** Returns a score for each file with mutants. */
export function summarise(report: Report): readonly FileScore[] {
  return Object.entries(report.files)
    .map(([file, { mutants }]) => score(file, mutants))
    .filter(({ killed, survived }) => killed + survived > 0)
}

export function scoreOf(report: Report): FileScore {
  return score(
    'all',
    Object.values(report.files).flatMap(({ mutants }) => mutants),
  )
}

function score(file: string, mutants: readonly Mutant[]): FileScore {
  const killed = mutants.filter(isKilled).length
  const survived = mutants.filter(hasSurvived).length
  return { file, killed, survived, percent: (100 * killed) / Math.max(1, killed + survived) }
}

/** Returns one line for each survivor: position, original and replacement. */
export function survivorsOf(report: Report): readonly string[] {
  return Object.entries(report.files).flatMap(([file, { source, mutants }]) =>
    mutants.filter(hasSurvived).map((mutant) => {
      const { line, column } = mutant.location.start
      const change = `\`${short(textAt(source, mutant))}\` → \`${short(mutant.replacement ?? '')}\``
      const where = `${file}:${line}:${column}`
      return `${where} ${mutant.mutatorName}: ${change}${mutant.status === 'NoCoverage' ? ' (never run)' : ''}`
    }),
  )
}

function textAt(source: string, { location: { start, end } }: Mutant): string {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  const last = lines.length - 1
  return lines
    .map((line, index) =>
      line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined),
    )
    .join('\n')
}

function short(text: string): string {
  const flat = text.replace(/\s+/g, ' ')
  return flat.length > 80 ? `${flat.slice(0, 80)}…` : flat
}
