import { ALERTS } from './alerts/main.ts'
import { CATALOG } from './catalog/main.ts'
import { EMISSION } from './emission/main.ts'
import type { Subject } from './harness/play.ts'
import { KAFKA } from './kafka/main.ts'
import { NATS } from './nats/main.ts'
import { POSTGRES } from './postgres/main.ts'
import { RABBITMQ } from './rabbitmq/main.ts'
import { REDIS } from './redis/main.ts'
import { SERVER } from './server/main.ts'
import { SQS } from './sqs/main.ts'

export const SUBJECTS: readonly Subject[] = [
  RABBITMQ,
  POSTGRES,
  KAFKA,
  NATS,
  SQS,
  REDIS,
  EMISSION,
  CATALOG,
  SERVER,
  ALERTS,
]
