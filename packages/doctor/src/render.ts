import type { Broker, Finding } from './finding.ts'
import { GRADES, type Graded } from './grade.ts'
import type { Report } from './report.ts'
import { visible } from './visible.ts'

/** One part of a report, to be printed or coloured by whoever shows it. */
export interface Section {
  readonly title: string
  readonly lines: readonly string[]
}

const NAMES: Readonly<Record<Broker, string>> = {
  rabbitmq: 'RabbitMQ',
  kafka: 'Kafka',
  postgres: 'PostgreSQL',
}

/** The report in sections: one for each broker, then the grade and what caps it. */
export function sectionsOf({ brokers, graded, accepted }: Report): readonly Section[] {
  const parts = brokers.map(({ broker, findings, graded: own }) => ({
    title: `${NAMES[broker]}: ${countOf(findings.length)}, grade ${own.grade}`,
    lines: alike(findings).flatMap((findings) => linesOf(findings, accepted)),
  }))
  return [
    ...parts,
    { title: `Grade ${graded.grade}: ${GRADES[graded.grade]}`, lines: capsOf(graded) },
  ]
}

/** The same as text. */
export function renderReport(report: Report): string {
  const sections = sectionsOf(report).map(({ title, lines }) =>
    [title, ...lines.map((line) => `  ${line}`)].join('\n'),
  )
  return `${sections.join('\n\n')}\n`
}

const countOf = (count: number) =>
  count === 1 ? '1 finding' : `${count === 0 ? 'no' : count} findings`

/** Those of one check that are as bad, in the order they came. */
const alike = (findings: readonly Finding[]): readonly (readonly Finding[])[] => [
  ...Map.groupBy(findings, ({ check, severity }) => `${severity} ${check}`).values(),
]

/** 5 by name: who repairs those knows how to find the others. */
const NAMED_MOST = 5

/** Twenty queues with one fault are one thing to repair, by the example of the first. */
function linesOf(findings: readonly Finding[], accepted: readonly string[]): readonly string[] {
  const [first, ...others] = findings
  if (first === undefined) return []
  const { severity, check, subject, found, why, fix } = first
  const note = accepted.includes(check) ? ' (accepted)' : ''
  return [
    `${severity.toUpperCase()} ${check} ${visible(subject)}${note}`,
    `  found  ${visible(found)}`,
    ...alsoOf(others),
    `  why    ${why}`,
    `  fix    ${visible(fix)}`,
  ]
}

function alsoOf(others: readonly Finding[]): readonly string[] {
  const lines = others
    .slice(0, NAMED_MOST - 1)
    .map(({ subject, found }) => `  also   ${visible(subject)}: ${visible(found)}`)
  const left = others.length - lines.length
  return left === 0 ? lines : [...lines, `  also   ${left} more; --json has them all`]
}

/** The checks that cap it, with how often each was hit: twenty queues with one fault are one thing to repair. */
function capsOf({ grade, cappedBy }: Graded): readonly string[] {
  const byCheck = Map.groupBy(cappedBy, ({ check }) => check)
  return [...byCheck].map(([check, { length, 0: first }]) => {
    const more = length > 1 ? ` and ${length - 1} more` : ''
    return `not better than ${grade} because of ${check}: ${visible(first?.subject ?? '')}${more}`
  })
}
