import type { Finding, Grade } from './finding.ts'

/** The guarantee of each grade for an accepted message. */
export const GRADES: Readonly<Record<Grade, string>> = {
  A: 'survives the loss of a minority of nodes, and restarts of all nodes',
  B: 'survives restarts of processes and nodes, but not the permanent loss of a node',
  C: 'can lose accepted messages without a permanent failure: on a restart, a failover, a full queue or by age',
}

export interface GradeResult {
  readonly grade: Grade
  /** The findings that limit the grade; empty for an A. */
  readonly cappedBy: readonly Finding[]
}

/** Returns the best grade that the worst finding allows. Findings that cap nothing (duplicates, delay) are ignored. */
export function gradeOf(findings: readonly Finding[]): GradeResult {
  const grade = findings.reduce<Grade>((worst, { caps }) => (caps > worst ? caps : worst), 'A')
  return { grade, cappedBy: grade === 'A' ? [] : findings.filter(({ caps }) => caps === grade) }
}
