import { type Broker, type Finding, findIn } from './finding.ts'
import { type Graded, gradeOf } from './grade.ts'
import { KAFKA_CHECKS } from './kafka/checks.ts'
import { type KafkaOptions, readKafka } from './kafka/read.ts'
import { POSTGRES_CHECKS } from './postgres/checks.ts'
import { type PostgresOptions, readPostgres } from './postgres/read.ts'
import { RABBITMQ_CHECKS } from './rabbitmq/checks.ts'
import { type RabbitmqOptions, readRabbitmq } from './rabbitmq/read.ts'

/** What to look at; at least one. */
export interface DiagnoseOptions {
  readonly rabbitmq?: RabbitmqOptions
  readonly kafka?: KafkaOptions
  readonly postgres?: PostgresOptions
  /** Checks whose findings are known and accepted: still reported and graded, but not in the exit code. */
  readonly accept?: readonly string[]
}

export interface BrokerReport {
  readonly broker: Broker
  /** Worst first. */
  readonly findings: readonly Finding[]
  readonly graded: Graded
}

export interface Report {
  readonly brokers: readonly BrokerReport[]
  /** Of all together: a message is as safe as the worst place it passes through. */
  readonly graded: Graded
  readonly accepted: readonly string[]
}

/** Reads the live settings and finds the traps. Changes nothing. */
export async function diagnose(options: DiagnoseOptions): Promise<Report> {
  const { rabbitmq, kafka, postgres, accept = [] } = options
  const found = await Promise.all([
    rabbitmq &&
      readRabbitmq(rabbitmq).then((facts) => reportOf('rabbitmq', findIn(RABBITMQ_CHECKS, facts))),
    kafka && readKafka(kafka).then((facts) => reportOf('kafka', findIn(KAFKA_CHECKS, facts))),
    postgres &&
      readPostgres(postgres).then((facts) => reportOf('postgres', findIn(POSTGRES_CHECKS, facts))),
  ])
  const brokers = found.filter((one) => one !== undefined)
  const graded = gradeOf(brokers.flatMap(({ findings }) => findings))
  return { brokers, graded, accepted: accept }
}

const reportOf = (broker: Broker, findings: readonly Finding[]): BrokerReport => ({
  broker,
  findings,
  graded: gradeOf(findings),
})

/** For a command: 0 when nothing was found that loses messages, 1 when something was that is not accepted. */
export function exitCodeOf({ brokers, accepted }: Report): 0 | 1 {
  const isLosing = ({ severity, check }: Finding) =>
    severity === 'loss' && !accepted.includes(check)
  return brokers.some(({ findings }) => findings.some(isLosing)) ? 1 : 0
}
