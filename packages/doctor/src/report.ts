import { type Broker, type Finding, findIn } from './finding.ts'
import { type GradeResult, gradeOf } from './grade.ts'
import { KAFKA_CHECKS } from './kafka/checks.ts'
import { type KafkaOptions, readKafka } from './kafka/read.ts'
import { NATS_CHECKS } from './nats/checks.ts'
import { type NatsOptions, readNats } from './nats/read.ts'
import { POSTGRES_CHECKS } from './postgres/checks.ts'
import { type PostgresOptions, readPostgres } from './postgres/read.ts'
import type { RabbitmqOptions } from './rabbitmq/read.ts'
import { findInRabbitmq } from './rabbitmq/vhosts.ts'
import { REDIS_CHECKS } from './redis/checks.ts'
import { readRedis, type RedisOptions } from './redis/read.ts'
import { SQS_CHECKS } from './sqs/checks.ts'
import { readSqs, type SqsOptions } from './sqs/read.ts'

/** The brokers to check; at least one. */
export interface DiagnoseOptions {
  readonly rabbitmq?: RabbitmqOptions
  readonly kafka?: KafkaOptions
  readonly nats?: NatsOptions
  readonly postgres?: PostgresOptions
  readonly redis?: RedisOptions
  readonly sqs?: SqsOptions
  /** Checks whose findings are accepted: they are reported and graded, but do not affect the exit code. */
  readonly accept?: readonly string[]
}

export interface BrokerReport {
  readonly broker: Broker
  /** Worst first. */
  readonly findings: readonly Finding[]
  readonly graded: GradeResult
}

export interface Report {
  readonly brokers: readonly BrokerReport[]
  /** The grade of all brokers together: the worst of them decides. */
  readonly graded: GradeResult
  readonly accepted: readonly string[]
}

/** Reads the live settings and runs all checks. Changes nothing. */
export async function diagnose(options: DiagnoseOptions): Promise<Report> {
  const { rabbitmq, kafka, nats, postgres, redis, sqs, accept = [] } = options
  const found = await Promise.all([
    rabbitmq && findInRabbitmq(rabbitmq).then((findings) => reportOf('rabbitmq', findings)),
    kafka && readKafka(kafka).then((facts) => reportOf('kafka', findIn(KAFKA_CHECKS, facts))),
    nats && readNats(nats).then((facts) => reportOf('nats', findIn(NATS_CHECKS, facts))),
    postgres &&
      readPostgres(postgres).then((facts) => reportOf('postgres', findIn(POSTGRES_CHECKS, facts))),
    redis && readRedis(redis).then((facts) => reportOf('redis', findIn(REDIS_CHECKS, facts))),
    sqs && readSqs(sqs).then((facts) => reportOf('sqs', findIn(SQS_CHECKS, facts))),
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

/** Returns the exit code of a command: 1 when an unaccepted finding can lose messages, otherwise 0. */
export function exitCodeOf({ brokers, accepted }: Report): 0 | 1 {
  const isLosing = ({ severity, check }: Finding) =>
    severity === 'loss' && !accepted.includes(check)
  return brokers.some(({ findings }) => findings.some(isLosing)) ? 1 : 0
}
