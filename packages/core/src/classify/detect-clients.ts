/** Detectors for errors of databases and brokers that have their own kind of code. */
import {
  AMQP_CODES,
  KAFKA_TYPES,
  MONGO_CODES,
  MONGO_LABELS,
  PRISMA_KINDS,
  REDIS_REPLIES,
  REDIS_WORDS,
} from './clients.ts'
import { read, readItems, readString, readText } from './read.ts'
import { typeOf } from './text.ts'
import { toVerdict, type Verdict } from './verdict.ts'

/** Labels of one error; real ones have one to three. */
const LABELS_MAX = 16

/** An adapter of Prisma describes the error of its driver with a plain object. */
export function prismaError(error: unknown): Verdict | undefined {
  if (typeOf(error) !== 'DriverAdapterError') return undefined
  const kind = readText(read(error, 'cause'), 'kind')
  const ruling = PRISMA_KINDS.get(kind)
  return ruling && toVerdict(ruling, kind)
}

/** A MongoDB code is a number that only the names of its errors distinguish from others. */
export function mongoError(error: unknown): Verdict | undefined {
  if (!typeOf(error).startsWith('Mongo')) return undefined
  const row = MONGO_CODES.get(read(error, 'code') as number)
  if (row !== undefined) return toVerdict(row[1], `MONGO ${row[0]}`)
  const labels = readItems(read(error, 'errorLabels'), LABELS_MAX)
  const label = MONGO_LABELS.find((one) => labels.includes(one))
  return label === undefined ? undefined : toVerdict('transient', `MONGO ${label}`)
}

/** The class and method of the refused command distinguish a reply code from other numbers. */
export function amqpError(error: unknown): Verdict | undefined {
  if (typeof read(error, 'classId') !== 'number') return undefined
  const row = AMQP_CODES.get(read(error, 'code') as number)
  return row && toVerdict(row[1], `AMQP ${row[0]}`)
}

/** kafkajs marks the errors of the protocol that the same request may survive. */
export function kafkaError(error: unknown): Verdict | undefined {
  const type = readString(error, 'type')
  if (type === undefined || !typeOf(error).startsWith('KafkaJS')) return undefined
  const retriable = read(error, 'retriable') === true ? 'transient' : undefined
  const ruling = KAFKA_TYPES.get(type) ?? retriable
  return ruling && toVerdict(ruling, `KAFKA ${type}`)
}

/** The protocol of Redis has no codes: the first word of an error reply is the code. */
export function redisError(error: unknown): Verdict | undefined {
  if (!REDIS_REPLIES.has(typeOf(error))) return undefined
  const [word = ''] = /^[A-Z]+(?= )/.exec(readText(error, 'message')) ?? []
  const ruling = REDIS_WORDS.get(word)
  return ruling && toVerdict(ruling, `REDIS ${word}`)
}
