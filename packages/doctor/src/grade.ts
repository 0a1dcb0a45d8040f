import type { Finding, Grade } from './finding.ts'

/** What each grade promises about a message that was accepted. */
export const GRADES: Readonly<Record<Grade, string>> = {
  A: 'survives the loss of a minority of nodes, and restarts of all of them',
  B: 'survives restarts of processes and nodes, not the loss of a node for good',
  C: 'can lose accepted messages while nothing is broken for good: on a restart, a fail-over, a full queue or by age',
}

export interface Graded {
  readonly grade: Grade
  /** The findings without which it would be better; empty for an A. */
  readonly cappedBy: readonly Finding[]
}

/** As good as the worst finding allows. What costs no grade (duplicates, delay) does not matter here. */
export function gradeOf(findings: readonly Finding[]): Graded {
  const grade = findings.reduce<Grade>((worst, { caps }) => (caps > worst ? caps : worst), 'A')
  return { grade, cappedBy: grade === 'A' ? [] : findings.filter(({ caps }) => caps === grade) }
}
