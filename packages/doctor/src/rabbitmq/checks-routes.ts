import { formatDuration } from '@redrive/core'
import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { onQueues, text } from './look.ts'
import { routeFor } from './repair-route.ts'
import { deadLetterTargets, isAtLeastOnce, isQueue, type Placed, type Role } from './roles.ts'

/** What may send messages on by itself. */
const SENDERS: readonly Role[] = ['source', 'retry', 'deadLetters']

const ROUTE = 'make the way that they take: {command:text}'

/** Whether what the broker itself gives up, or sends on, arrives. */
export const ROUTE_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.dead-letters-nowhere',
    severity: 'loss',
    caps: 'C',
    looksFor: 'dead-lettering at most once to an exchange that is missing or bound to no queue',
    why: 'What the broker gives up or sends on reaches no queue and is deleted.',
    fix: ROUTE,
    hits: onQueues(SENDERS, (placed, facts) =>
      isAtLeastOnce(placed) ? undefined : unroutable(placed, facts),
    ),
  },
  {
    id: 'rabbitmq.dead-letters-stuck',
    severity: 'delay',
    caps: 'A',
    looksFor: 'dead-lettering at least once to an exchange that is missing or bound to no queue',
    why: 'What the broker gives up stays in the queue, unseen and counted, until there is a route; the broker tries again after about three minutes.',
    fix: ROUTE,
    hits: onQueues(SENDERS, (placed, facts) =>
      isAtLeastOnce(placed) ? unroutable(placed, facts) : undefined,
    ),
  },
  {
    id: 'rabbitmq.exchange-not-durable',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a dead-letter exchange that is not durable, or auto-delete',
    why: 'The exchange is gone after a restart, or with its last binding, and what is dead-lettered then goes nowhere.',
    fix: 'delete the exchange {exchange} and declare it as durable, without auto-delete; bind its queues again',
    hits: onQueues(SENDERS, ({ setting }, { exchanges = [] }) => {
      const exchange = exchanges.find(({ name }) => name === setting('dead-letter-exchange'))
      if (exchange === undefined || (exchange.isDurable && !exchange.isAutoDelete)) return undefined
      const found = exchange.isDurable ? 'auto_delete: true' : 'durable: false'
      return { found: `exchange ${exchange.name} ${found}`, fill: { exchange: exchange.name } }
    }),
  },
  {
    id: 'rabbitmq.retry-queue-shared',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a retry queue that leads back to several source queues',
    why: 'The broker has a window of some 32 messages on their way: when one source cannot be reached, the retries of all others in that queue stand still.',
    fix: 'give each source its own retry queues, with dead-letter-exchange "" and dead-letter-routing-key set to the source',
    hits: onQueues(['retry'], (placed, facts) => {
      const targets = deadLetterTargets(facts, placed)
      if (targets !== undefined && targets.length > 1) return `leads to ${targets.join(', ')}`
      return placed.setting('dead-letter-exchange') !== undefined &&
        placed.setting('dead-letter-routing-key') === undefined
        ? 'dead-letter-routing-key not set: leads wherever a message came from'
        : undefined
    }),
  },
  {
    id: 'rabbitmq.retry-elsewhere',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry queue that does not lead back to its source',
    why: 'A retry whose wait is over goes to another queue, or nowhere: its consumer never sees it again.',
    fix: 'delete it when it is empty; it is declared again as it must be with the next retry',
    hits: onQueues(['retry'], (placed, facts) => {
      const source = sourceOf(placed)
      const targets = deadLetterTargets(facts, placed)
      if (source === undefined || !isQueue(facts, source) || targets === undefined) {
        return source !== undefined && placed.setting('dead-letter-exchange') === undefined
          ? 'dead-letter-exchange not set'
          : undefined
      }
      return targets.length > 0 && !targets.includes(source)
        ? `leads to ${targets.join(', ')}`
        : undefined
    }),
  },
  {
    id: 'rabbitmq.retry-ttl',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a retry queue that holds messages for another time than its name says',
    why: 'Retries come at the wrong time; without a time to live they never come.',
    fix: 'delete it when it is empty; it is declared again as it must be with the next retry',
    hits: onQueues(['retry'], (placed) => {
      const step = sourceOf(placed) === undefined ? undefined : placed.queue.name.split('.').at(-1)
      const ttl = placed.setting('message-ttl')
      if (step === undefined || (typeof ttl === 'number' && formatDuration(ttl) === step))
        return undefined
      return `message-ttl ${text(ttl)}, name ${step}`
    }),
  },
]

function unroutable(placed: Placed, facts: RabbitmqFacts) {
  if (deadLetterTargets(facts, placed)?.length !== 0) return undefined
  const exchange = String(placed.setting('dead-letter-exchange'))
  const key = text(placed.setting('dead-letter-routing-key'))
  const isThere = facts.exchanges?.some(({ name }) => name === exchange)
  const found = isThere
    ? `nothing is bound to '${exchange}' for the key ${key}`
    : `exchange ${exchange} is missing`
  return { found, fill: { command: routeFor(facts, placed) } }
}

/** By our names: `orders.delay.5s` belongs to `orders`. */
const sourceOf = ({ queue: { name } }: Placed): string | undefined =>
  /^(.+)\.delay\.[0-9a-z]+$/.exec(name)?.[1]
