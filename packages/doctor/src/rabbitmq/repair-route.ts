import { shell } from '../quote.ts'
import type { RabbitmqFacts } from './facts.ts'
import { text } from './look.ts'
import { isQueue, type QueueWithRole } from './roles.ts'

/** A million, as in the transport: the broker never dead-letters a message before Redrive does. */
export const HIGH_LIMIT = 1_000_000

const STORAGE_ARGUMENTS = {
  'x-queue-type': 'quorum',
  'x-overflow': 'reject-publish',
  'x-delivery-limit': HIGH_LIMIT,
}

/** Returns how to create the missing route for the dead letters of a queue. */
export function routeFor(facts: RabbitmqFacts, { queue, role, setting }: QueueWithRole): string {
  const exchange = String(setting('dead-letter-exchange'))
  const key = setting('dead-letter-routing-key')
  if (role === 'source') {
    return routeTo(facts, queue.name, exchange, typeof key === 'string' ? key : undefined)
  }
  // Only the owner of another kind of queue knows its target.
  return exchange === ''
    ? `declare the queue ${shell(text(key))}`
    : `declare the exchange ${shell(exchange)} as durable and bind a queue to it with the key ${shell(text(key))}`
}

/**
 * Returns the command that declares the missing parts of the route to the dead-letter queue of a source. It imports
 * definitions: `rabbitmqctl` has no other way to declare, and definitions do not change existing objects.
 */
export function routeTo(
  facts: RabbitmqFacts,
  source: string,
  exchange: string,
  key: string | undefined,
): string {
  const { vhost } = facts
  const existing = facts.exchanges?.find(({ name }) => name === exchange)
  const type = existing?.type ?? (key === undefined ? 'fanout' : 'direct')
  const common = { vhost, durable: true, auto_delete: false }
  // The default exchange routes to the queue with the name of the key, and accepts no bindings.
  const isDefault = exchange === ''
  const queue = isDefault ? (key ?? source) : `${source}.dlq`
  const declared = { ...common, name: exchange, type, internal: false, arguments: {} }
  const bound = { vhost, source: exchange, destination: queue, destination_type: 'queue' }
  const binding = { ...bound, routing_key: key ?? defaultKey(type, source), arguments: {} }
  const definitions = {
    exchanges: isDefault || existing !== undefined ? [] : [declared],
    queues: isQueue(facts, queue) ? [] : [{ ...common, name: queue, arguments: STORAGE_ARGUMENTS }],
    bindings: isDefault ? [] : [binding],
  }
  return `printf %s ${shell(JSON.stringify(definitions))} | rabbitmqctl import_definitions`
}

/** Returns the key of messages without a dead-letter key: they keep their own. A message published directly to the queue has the queue name as key. */
const defaultKey = (type: string, source: string) => (type === 'topic' ? '#' : source)
