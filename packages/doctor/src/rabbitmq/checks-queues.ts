import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { boundOf, isBounded, onQueues, text } from './look.ts'
import type { Role } from './roles.ts'

/** What must keep what it was given, whatever it is for. */
const KEEPERS: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** What holds failed messages. */
const ASIDE: readonly Role[] = ['retry', 'deadLetters', 'confirmations']

const ANEW = 'move its messages, delete it and declare it anew'

/** Whether the queues keep what they were given. */
export const QUEUE_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.classic-source',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a source queue that is not a quorum queue',
    why: 'A classic queue lives on one node: when that node is lost, so is everything in it. It does not count deliveries either, so a message that kills its consumer is not noticed.',
    fix: `${ANEW} with x-queue-type: quorum`,
    hits: onQueues(['source'], ({ queue }) =>
      queue.type === 'quorum' ? undefined : `type ${queue.type}`,
    ),
  },
  {
    id: 'rabbitmq.classic-dead-letter-queue',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a dead-letter, quarantine, retry or confirmation queue that is not a quorum queue',
    why: 'A classic queue lives on one node: when that node is lost, the failed messages in it are lost, and they are nowhere else any more.',
    fix: `${ANEW} with x-queue-type: quorum`,
    hits: onQueues(ASIDE, ({ queue }) =>
      queue.type === 'quorum' || queue.type === 'stream' ? undefined : `type ${queue.type}`,
    ),
  },
  {
    id: 'rabbitmq.not-durable',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a queue that is not durable',
    why: 'The queue and everything in it is gone when its node restarts.',
    fix: `${ANEW} with durable: true`,
    hits: onQueues(KEEPERS, ({ queue }) => (queue.isDurable ? undefined : 'durable: false')),
  },
  {
    id: 'rabbitmq.auto-delete',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a queue that is auto-delete or exclusive',
    why: 'The queue is deleted with everything in it when its last consumer goes, for example in a deployment.',
    fix: `${ANEW} with autoDelete: false and exclusive: false`,
    hits: onQueues(KEEPERS, ({ queue }) => {
      if (queue.isExclusive) return 'exclusive: true'
      return queue.isAutoDelete ? 'auto_delete: true' : undefined
    }),
  },
  {
    id: 'rabbitmq.dead-letter-queue-bounded',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a bounded dead-letter, retry or confirmation queue that refuses when it is full',
    why: 'When it is full, failed messages cannot be set aside: they stay in hand, and the consumer stops.',
    fix: 'remove the bound, or alert well below it',
    hits: onQueues(ASIDE, (placed) =>
      isBounded(placed) && text(placed.setting('overflow')).startsWith('reject-publish')
        ? boundOf(placed)
        : undefined,
    ),
  },
]
