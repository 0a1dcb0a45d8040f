import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { boundOf, isBounded, onQueues, text } from './look.ts'
import type { Role } from './roles.ts'

/** The roles of all queues that must keep their messages. */
const STORAGE_ROLES: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** The roles of queues with failed messages or confirmations. */
const WITHOUT_SOURCE: readonly Role[] = ['retry', 'deadLetters', 'confirmations']

const REDECLARE = 'move its messages, delete it and declare it again'

/** Checks whether the queues keep their messages. */
export const QUEUE_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.classic-source',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a source queue that is not a quorum queue',
    why: 'A classic queue is stored on one node: when that node is lost, its messages are lost. It also does not count deliveries, so a message that crashes its consumer is not detected.',
    fix: `${REDECLARE} with x-queue-type: quorum`,
    hits: onQueues(['source'], ({ queue }) =>
      queue.type === 'quorum' ? undefined : `type ${queue.type}`,
    ),
  },
  {
    id: 'rabbitmq.classic-dead-letter-queue',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a dead-letter, quarantine, retry or confirmation queue that is not a quorum queue',
    why: 'A classic queue is stored on one node: when that node is lost, its failed messages are lost. No other copy exists.',
    fix: `${REDECLARE} with x-queue-type: quorum`,
    hits: onQueues(WITHOUT_SOURCE, ({ queue }) =>
      queue.type === 'quorum' || queue.type === 'stream' ? undefined : `type ${queue.type}`,
    ),
  },
  {
    id: 'rabbitmq.not-durable',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a queue that is not durable',
    why: 'The queue and its messages are deleted when its node restarts.',
    fix: `${REDECLARE} with durable: true`,
    hits: onQueues(STORAGE_ROLES, ({ queue }) => (queue.isDurable ? undefined : 'durable: false')),
  },
  {
    id: 'rabbitmq.auto-delete',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a queue that is auto-delete or exclusive',
    why: 'The queue and its messages are deleted when its last consumer disconnects, for example during a deployment.',
    fix: `${REDECLARE} with autoDelete: false and exclusive: false`,
    hits: onQueues(STORAGE_ROLES, ({ queue }) => {
      if (queue.isExclusive) return 'exclusive: true'
      return queue.isAutoDelete ? 'auto_delete: true' : undefined
    }),
  },
  {
    id: 'rabbitmq.dead-letter-queue-bounded',
    severity: 'delay',
    caps: 'A',
    looksFor:
      'a dead-letter, retry or confirmation queue with a length limit that rejects messages when it is full',
    why: 'When it is full, failed messages cannot be moved to it: they stay in flight, and the consumer stops.',
    fix: 'remove the limit, or add an alert well below it',
    hits: onQueues(WITHOUT_SOURCE, (placed) =>
      isBounded(placed) && text(placed.setting('overflow')).startsWith('reject-publish')
        ? boundOf(placed)
        : undefined,
    ),
  },
]
