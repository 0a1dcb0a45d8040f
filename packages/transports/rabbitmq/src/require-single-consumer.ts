import { RedriveError } from '@redrive/core'
import type { ChannelModel, Options } from 'amqplib'
import { messageOf } from './connection/connection.ts'
import { declareRefusal } from './declare-refusal.ts'
import { SINGLE_ACTIVE_CONSUMER } from './topology.ts'

/** 30: more settings than a queue can have. */
const MAX_SETTINGS = 30

/**
 * Throws if an existing queue can deliver to several consumers at the same time. Each refusal to declare it adds one
 * setting, until nothing else differs.
 */
export async function requireSingleConsumer(
  connection: ChannelModel,
  queue: string,
): Promise<void> {
  let settings: Settings = { durable: true, arguments: { [SINGLE_ACTIVE_CONSUMER]: true } }
  for (let known = 0; known < MAX_SETTINGS; known++) {
    const refusal = await declareRefusal(connection, queue, settings)
    if (refusal === undefined) return
    const difference = DIFFERENCE.exec(messageOf(refusal))?.groups
    // Without the permission to configure the queue, nothing can be known about it.
    if (difference === undefined) return
    const { name = '', value = '', type } = difference
    if (name === SINGLE_ACTIVE_CONSUMER) throw manyConsumers(queue, refusal)
    settings = withSetting(settings, name, valueOf(value, type))
  }
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Redrive cannot find out whether the queue ${queue} has a single active consumer, which order: 'lane' needs. Use topology: 'declare' with a new queue, or order: 'none'.`,
  )
}

/** The difference as RabbitMQ writes it. The last part is `the value '5' of type 'byte'`, or `'5'`. */
const DIFFERENCE =
  /inequivalent arg '(?<name>[^']+)'.* current is (?:none|(?:the value )?'(?<value>.*?)'(?: of type '(?<type>\w+)')?)(?:$|")/

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

const manyConsumers = (queue: string, cause: unknown) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} delivers to several consumers at the same time, so order: 'lane' cannot keep the order. Create a queue with the argument ${SINGLE_ACTIVE_CONSUMER}: true and consume from it, or use order: 'none'.`,
    { cause },
  )
