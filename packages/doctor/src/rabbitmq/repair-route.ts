import { shell } from '../quote.ts'
import type { RabbitmqFacts } from './facts.ts'
import { text } from './look.ts'
import { isQueue, type Placed } from './roles.ts'

/** A million, as the transport has it: the broker never gives up before we do. */
export const HIGH_LIMIT = 1_000_000

const KEEPER = {
  'x-queue-type': 'quorum',
  'x-overflow': 'reject-publish',
  'x-delivery-limit': HIGH_LIMIT,
}

/** How to make the way that a queue's dead letters should take, which leads nowhere. */
export function routeFor(facts: RabbitmqFacts, { queue, role, setting }: Placed): string {
  const exchange = String(setting('dead-letter-exchange'))
  const key = setting('dead-letter-routing-key')
  if (role === 'source') {
    return routeTo(facts, queue.name, exchange, typeof key === 'string' ? key : undefined)
  }
  // Where a queue of another kind should lead only its owner knows.
  return exchange === ''
    ? `declare the queue ${shell(text(key))}`
    : `declare the exchange ${shell(exchange)} as durable and bind a queue to it with the key ${shell(text(key))}`
}

/**
 * The command that declares what is missing on the way to the dead-letter queue of a source. By definitions:
 * `rabbitmqctl` declares in no other way, and they leave alone what is there.
 */
export function routeTo(
  facts: RabbitmqFacts,
  source: string,
  exchange: string,
  key: string | undefined,
): string {
  const { vhost } = facts
  const there = facts.exchanges?.find(({ name }) => name === exchange)
  const type = there?.type ?? (key === undefined ? 'fanout' : 'direct')
  const kept = { vhost, durable: true, auto_delete: false }
  // The default exchange leads to the queue of that name, and nothing can be bound to it.
  const isDefault = exchange === ''
  const queue = isDefault ? (key ?? source) : `${source}.dlq`
  const declared = { ...kept, name: exchange, type, internal: false, arguments: {} }
  const bound = { vhost, source: exchange, destination: queue, destination_type: 'queue' }
  const binding = { ...bound, routing_key: key ?? anyKey(type, source), arguments: {} }
  const definitions = {
    exchanges: isDefault || there !== undefined ? [] : [declared],
    queues: isQueue(facts, queue) ? [] : [{ ...kept, name: queue, arguments: KEEPER }],
    bindings: isDefault ? [] : [binding],
  }
  return `printf %s ${shell(JSON.stringify(definitions))} | rabbitmqctl import_definitions`
}

/** Without a key, a message keeps its own: what came straight to the queue has the name of the queue. */
const anyKey = (type: string, source: string) => (type === 'topic' ? '#' : source)
