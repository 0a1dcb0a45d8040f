import { RedriveError } from '@redrive/core'
import type { ChannelModel, Options } from 'amqplib'
import { messageOf } from './connection/connection.ts'
import { declareRefusal, differenceIn } from './queue-refusal.ts'
import { codeOf, FORBIDDEN } from './refusal-codes.ts'
import { type QueueSpec, SINGLE_ACTIVE_CONSUMER } from './topology.ts'

/** 30: more settings than a queue can have. */
const MAX_SETTINGS = 30

/**
 * Throws if an existing queue can deliver to several consumers at the same time, or if this cannot be known. Each
 * refusal to declare it adds one setting, until nothing else differs.
 */
export async function requireSingleConsumer(
  connection: ChannelModel,
  { name: queue, arguments: expected }: QueueSpec,
): Promise<void> {
  const declared = { durable: true, arguments: expected }
  if ((await declareRefusal(connection, queue, declared)) === undefined) return
  let settings: Settings = { durable: true, arguments: { [SINGLE_ACTIVE_CONSUMER]: true } }
  let refusal: unknown
  for (let known = 0; known < MAX_SETTINGS; known++) {
    refusal = await declareRefusal(connection, queue, settings)
    // Without the permission to configure the queue, nothing can be known about it.
    if (refusal === undefined || codeOf(refusal) === FORBIDDEN) return
    const name = differenceIn(refusal)
    if (name === SINGLE_ACTIVE_CONSUMER) throw manyConsumers(queue, refusal)
    const current = CURRENT.exec(messageOf(refusal))?.groups
    if (name === undefined || current === undefined) break
    settings = withSetting(settings, name, valueOf(current['value'] ?? '', current['type']))
  }
  if (await isSingleConsumerNext(connection, queue, settings)) return
  throw cannotCheck(queue, refusal)
}

/**
 * Returns whether the argument is the first difference when it is missing. With the argument, another setting differed
 * first, so the argument itself is equal.
 */
async function isSingleConsumerNext(
  connection: ChannelModel,
  queue: string,
  settings: Settings,
): Promise<boolean> {
  const { [SINGLE_ACTIVE_CONSUMER]: _, ...others } = settings.arguments
  const refusal = await declareRefusal(connection, queue, { ...settings, arguments: others })
  return differenceIn(refusal) === SINGLE_ACTIVE_CONSUMER
}

/** The existing value as RabbitMQ writes it: `the value '5' of type 'byte'`, or `'5'`. With a long name, it is cut off. */
const CURRENT =
  /.* current is (?:none|(?:the value )?'(?<value>.*?)'(?: of type '(?<type>\w+)')?)(?:$|")/

interface Settings extends Options.AssertQueue {
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Settings that are not in the table of arguments. */
const PROPERTIES: Readonly<Record<string, keyof Options.AssertQueue>> = {
  durable: 'durable',
  auto_delete: 'autoDelete',
}

function withSetting(settings: Settings, name: string, value: unknown): Settings {
  const property = PROPERTIES[name]
  return property === undefined
    ? { ...settings, arguments: { ...settings.arguments, [name]: value } }
    : { ...settings, [property]: value === true }
}

function valueOf(text: string, type: string | undefined): unknown {
  if (type === 'longstr') return text
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d+$/.test(text) ? Number(text) : text
}

const cannotCheck = (queue: string, cause: unknown) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Redrive cannot find out whether the queue ${queue} has a single active consumer, which order: 'lane' needs. RabbitMQ cuts its replies at 255 bytes, so the settings of a queue with a long name may not be readable. Use a queue with a shorter name, a new queue with topology: 'declare', or order: 'none'.`,
    { cause },
  )

const manyConsumers = (queue: string, cause: unknown) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} delivers to several consumers at the same time, so order: 'lane' cannot keep the order. Create a queue with the argument ${SINGLE_ACTIVE_CONSUMER}: true and consume from it, or use order: 'none'.`,
    { cause },
  )
