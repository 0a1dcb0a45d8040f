import { formatDuration } from '@redrive/core'
import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { onQueues, text } from './look.ts'
import { routeFor } from './repair-route.ts'
import {
  deadLetterTargets,
  isAtLeastOnce,
  isQueue,
  type QueueWithRole,
  type Role,
} from './roles.ts'

/** The roles of queues that may dead-letter messages. */
const DEAD_LETTERING_ROLES: readonly Role[] = ['source', 'retry', 'deadLetters']

const ROUTE = 'create the missing route: {command:text}'

/** Checks whether messages that the broker dead-letters reach a queue. */
export const ROUTE_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.dead-letters-nowhere',
    severity: 'loss',
    caps: 'C',
    looksFor: 'dead-lettering at most once to an exchange that is missing or bound to no queue',
    why: 'Messages that the broker dead-letters reach no queue and are deleted.',
    fix: ROUTE,
    hits: onQueues(DEAD_LETTERING_ROLES, (placed, facts) =>
      isAtLeastOnce(placed) ? undefined : unroutable(placed, facts),
    ),
  },
  {
    id: 'rabbitmq.dead-letters-stuck',
    severity: 'delay',
    caps: 'A',
    looksFor: 'dead-lettering at least once to an exchange that is missing or bound to no queue',
    why: 'Messages that the broker dead-letters stay in the queue until a route exists. They are counted but not delivered. The broker tries again after about three minutes.',
    fix: ROUTE,
    hits: onQueues(DEAD_LETTERING_ROLES, (placed, facts) =>
      isAtLeastOnce(placed) ? unroutable(placed, facts) : undefined,
    ),
  },
  {
    id: 'rabbitmq.exchange-not-durable',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a dead-letter exchange that is not durable or that is auto-delete',
    why: 'The exchange is deleted by a restart or with its last binding. Messages that are dead-lettered after that are lost.',
    fix: 'delete the exchange {exchange} and declare it as durable, without auto-delete; bind its queues again',
    hits: onQueues(DEAD_LETTERING_ROLES, ({ setting }, { exchanges = [] }) => {
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
    why: 'The broker moves about 32 messages at a time: when one source is unreachable, the retries of all others in that queue stall.',
    fix: 'use separate retry queues for each source, with dead-letter-exchange "" and dead-letter-routing-key set to the source',
    hits: onQueues(['retry'], (placed, facts) => {
      const targets = deadLetterTargets(facts, placed)
      if (targets !== undefined && targets.length > 1) return `leads to ${targets.join(', ')}`
      return placed.setting('dead-letter-exchange') !== undefined &&
        placed.setting('dead-letter-routing-key') === undefined
        ? 'dead-letter-routing-key not set: leads to the original routing key of each message'
        : undefined
    }),
  },
  {
    id: 'rabbitmq.retry-elsewhere',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry queue that does not lead back to its source',
    why: 'After its delay, a retry goes to another queue or is lost: its consumer never receives it again.',
    fix: 'delete it when it is empty; the next retry declares it again with the right settings',
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
    looksFor: 'a retry queue whose time to live differs from its name',
    why: 'Retries arrive at the wrong time; without a time to live they never arrive.',
    fix: 'delete it when it is empty; the next retry declares it again with the right settings',
    hits: onQueues(['retry'], (placed) => {
      const step = sourceOf(placed) === undefined ? undefined : placed.queue.name.split('.').at(-1)
      const ttl = placed.setting('message-ttl')
      if (step === undefined || (typeof ttl === 'number' && formatDuration(ttl) === step))
        return undefined
      return `message-ttl ${text(ttl)}, name ${step}`
    }),
  },
]

function unroutable(placed: QueueWithRole, facts: RabbitmqFacts) {
  if (deadLetterTargets(facts, placed)?.length !== 0) return undefined
  const exchange = String(placed.setting('dead-letter-exchange'))
  const key = text(placed.setting('dead-letter-routing-key'))
  const doesExist = facts.exchanges?.some(({ name }) => name === exchange)
  const found = doesExist
    ? `nothing is bound to '${exchange}' for the key ${key}`
    : `exchange ${exchange} is missing`
  return { found, fill: { command: routeFor(facts, placed) } }
}

/** Returns the source of a retry queue by its name: `orders.delay.5s` belongs to `orders`. */
const sourceOf = ({ queue: { name } }: QueueWithRole): string | undefined =>
  /^(.+)\.delay\.[0-9a-z]+$/.exec(name)?.[1]
