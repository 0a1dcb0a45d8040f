import { type Check, SEVERITIES, type Severity } from './finding.ts'
import { KAFKA_CHECKS } from './kafka/checks.ts'
import { NATS_CHECKS } from './nats/checks.ts'
import { POSTGRES_CHECKS } from './postgres/checks.ts'
import { FILLS } from './quote.ts'
import { RABBITMQ_CHECKS } from './rabbitmq/checks.ts'
import { REDIS_CHECKS } from './redis/checks.ts'
import { SQS_CHECKS } from './sqs/checks.ts'

/** The description of a check, without its function. */
export type CheckInfo = Omit<Check<never>, 'hits'>

/** All checks, for a list or a page of documentation. */
export const ALL_CHECKS: readonly CheckInfo[] = [
  ...RABBITMQ_CHECKS,
  ...KAFKA_CHECKS,
  ...NATS_CHECKS,
  ...POSTGRES_CHECKS,
  ...REDIS_CHECKS,
  ...SQS_CHECKS,
].map(({ id, severity, caps, looksFor, why, fix }) => ({ id, severity, caps, looksFor, why, fix }))

/** Returns a Markdown table of the checks of one broker, worst first. docs/doctor.md contains it, and a test compares them. */
export function checkTable(checks: readonly CheckInfo[]): string {
  const order = (severity: Severity) => SEVERITIES.indexOf(severity)
  const rows = checks
    .toSorted((one, other) => order(one.severity) - order(other.severity))
    .map(
      ({ id, severity, caps, looksFor, why, fix }) =>
        `| ${[`\`${id}\``, severity, caps === 'A' ? '' : caps, cell(looksFor), cell(why), cell(fix)].join(' | ')} |`,
    )
  return [
    '| check | severity | caps | looks for | why | fix |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

/** Escapes a cell: `|` would end it, and placeholders in braces are shown as ‹name›. */
const cell = (text: string) => text.replaceAll('|', '\\|').replace(FILLS, '‹$1›')
