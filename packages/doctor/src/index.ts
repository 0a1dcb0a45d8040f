export type { Broker, Check, Finding, Grade, CheckHit, Severity, Unreadable } from './finding.ts'
export { findIn } from './finding.ts'
export { type GradeResult, gradeOf } from './grade.ts'
export { KAFKA_CHECKS } from './kafka/checks.ts'
export type { KafkaFacts, KafkaSourceFacts, PartitionFacts, TopicFacts } from './kafka/facts.ts'
export type { KafkaSource } from './kafka/names.ts'
export { type KafkaOptions, readKafka } from './kafka/read.ts'
export { NATS_CHECKS } from './nats/checks.ts'
export type { ConsumerFacts, NatsFacts, StreamFacts, SyncFacts } from './nats/facts.ts'
export type { NatsSource } from './nats/names.ts'
export { type NatsOptions, readNats } from './nats/read.ts'
export { POSTGRES_CHECKS } from './postgres/checks.ts'
export type {
  OverrideFacts,
  PostgresFacts,
  SchemaFacts,
  SchemaName,
  SlotFacts,
  TableFacts,
  TransactionFacts,
} from './postgres/facts.ts'
export { type PostgresOptions, readPostgres } from './postgres/read.ts'
export { RABBITMQ_CHECKS } from './rabbitmq/checks.ts'
export type {
  BindingFacts,
  ExchangeFacts,
  NodeFacts,
  PolicyFacts,
  QueueFacts,
  RabbitmqFacts,
  Settings,
} from './rabbitmq/facts.ts'
export { type RabbitmqOptions, readRabbitmq } from './rabbitmq/read.ts'
export { REDIS_CHECKS } from './redis/checks.ts'
export type { RedisFacts } from './redis/facts.ts'
export { readRedis, type RedisOptions } from './redis/read.ts'
export { renderReport, type Section, sectionsOf } from './render.ts'
export {
  type BrokerReport,
  type DiagnoseOptions,
  diagnose,
  exitCodeOf,
  type Report,
} from './report.ts'
export { SQS_CHECKS } from './sqs/checks.ts'
export type { SqsFacts, SqsPolicyFacts, SqsQueueFacts, SqsSourceFacts } from './sqs/facts.ts'
export { readSqs, type SqsOptions } from './sqs/read.ts'
export type { TlsOptions } from './tls.ts'
