import type { Broker, Finding } from './finding.ts'
import { GRADES, type GradeResult } from './grade.ts'
import type { Report } from './report.ts'
import { visible } from './visible.ts'

/** One section of a report; the caller prints or colours it. */
export interface Section {
  readonly title: string
  readonly lines: readonly string[]
}

const NAMES: Readonly<Record<Broker, string>> = {
  rabbitmq: 'RabbitMQ',
  kafka: 'Kafka',
  nats: 'NATS JetStream',
  postgres: 'PostgreSQL',
  redis: 'Redis',
  sqs: 'Amazon SQS',
}

/** Returns the report in sections: one per broker, then the grade and the checks that limit it. */
export function sectionsOf({ brokers, graded, accepted }: Report): readonly Section[] {
  const sections = brokers.map(({ broker, findings, graded: own }) => ({
    title: `${NAMES[broker]}: ${countOf(findings.length)}, grade ${own.grade}`,
    lines: groupBySeverityAndCheck(findings).flatMap((findings) => linesOf(findings, accepted)),
  }))
  return [
    ...sections,
    { title: `Grade ${graded.grade}: ${GRADES[graded.grade]}`, lines: capsOf(graded) },
  ]
}

/** Returns the report as text. */
export function renderReport(report: Report): string {
  const sections = sectionsOf(report).map(({ title, lines }) =>
    [title, ...lines.map((line) => `  ${line}`)].join('\n'),
  )
  return `${sections.join('\n\n')}\n`
}

const countOf = (count: number) =>
  count === 1 ? '1 finding' : `${count === 0 ? 'no' : count} findings`

/** Groups the findings of one check with the same severity, and keeps their order. */
const groupBySeverityAndCheck = (findings: readonly Finding[]): readonly (readonly Finding[])[] => [
  ...Map.groupBy(findings, ({ check, severity }) => `${severity} ${check}`).values(),
]

/** 5 subjects are listed by name; the same fix applies to the others. */
const MAX_NAMED = 5

/** Returns the lines for findings of one check. Only the first is shown in full, because the others have the same fix. */
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
    .slice(0, MAX_NAMED - 1)
    .map(({ subject, found }) => `  also   ${visible(subject)}: ${visible(found)}`)
  const left = others.length - lines.length
  return left === 0 ? lines : [...lines, `  also   ${left} more; use --json to list all`]
}

/** Returns one line per check that limits the grade, with its number of findings. */
function capsOf({ grade, cappedBy }: GradeResult): readonly string[] {
  const byCheck = Map.groupBy(cappedBy, ({ check }) => check)
  return [...byCheck].map(([check, { length, 0: first }]) => {
    const more = length > 1 ? ` and ${length - 1} more` : ''
    return `limited to grade ${grade} by ${check}: ${visible(first?.subject ?? '')}${more}`
  })
}
