import type { Check } from '../finding.ts'
import type { RabbitmqFacts, Settings } from './facts.ts'
import { boundOf, isBefore, isBounded, isSet, onQueues, text } from './look.ts'
import { HIGH_LIMIT } from './repair-route.ts'
import { repairOf } from './repair.ts'
import type { QueueWithRole, Role } from './roles.ts'

/** The roles of all queues that must keep their messages. */
const STORAGE_ROLES: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** The roles of queues with failed messages or confirmations. */
const WITHOUT_SOURCE: readonly Role[] = ['retry', 'deadLetters', 'confirmations']
/** The roles of queues that may dead-letter messages. */
const DEAD_LETTERING_ROLES: readonly Role[] = ['source', 'retry', 'deadLetters']

/** Below 1,000 deliveries, the broker may dead-letter a message before Redrive does. Redrive sets a million. */
const LOW_LIMIT = 1_000
/** 20: the default of the broker since 4.0. */
const DEFAULT_LIMIT = 20

/** A wrong setting that a policy can fix: the actual value, and the wanted one. Undefined means not set. */
interface SettingProblem {
  readonly found: string
  readonly wants: Settings
}

interface SettingCheck extends Omit<Check<RabbitmqFacts>, 'hits'> {
  readonly roles: readonly Role[]
  readonly inspect: (placed: QueueWithRole, facts: RabbitmqFacts) => SettingProblem | undefined
}

const CHECKS: readonly SettingCheck[] = [
  {
    id: 'rabbitmq.expires',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a queue with an expiry',
    why: 'The queue is deleted with its confirmed messages when no consumer used it for that time. Publishing does not count as use, and nothing is dead-lettered.',
    fix: 'remove expires: {command:text}',
    roles: STORAGE_ROLES,
    inspect: ({ setting }) =>
      isSet(setting('expires'))
        ? { found: `expires ${text(setting('expires'))} ms`, wants: { expires: undefined } }
        : undefined,
  },
  {
    id: 'rabbitmq.drop-head',
    severity: 'loss',
    caps: 'C',
    looksFor:
      'a dead-letter, retry or confirmation queue with a length limit that drops the oldest message when it is full',
    why: 'With overflow drop-head, which is the default, each message above the limit deletes the oldest one.',
    fix: 'remove the limit, or reject messages above it: {command:text}',
    roles: WITHOUT_SOURCE,
    inspect: (placed) =>
      isBounded(placed) && (placed.setting('overflow') ?? 'drop-head') === 'drop-head'
        ? {
            found: `${boundOf(placed)}, overflow ${text(placed.setting('overflow'))}`,
            wants: { overflow: 'reject-publish' },
          }
        : undefined,
  },
  {
    id: 'rabbitmq.dead-letter-ttl',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a time to live on a dead-letter queue without a dead-letter exchange',
    why: 'Dead letters are deleted at that age, even if no operator has seen them. Use deadLetter.retention of the policy to set their retention.',
    fix: 'remove message-ttl: {command:text}',
    roles: ['deadLetters'],
    inspect: ({ setting }) =>
      isSet(setting('message-ttl')) && !isSet(setting('dead-letter-exchange'))
        ? withoutTtl(setting)
        : undefined,
  },
  {
    id: 'rabbitmq.source-ttl',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a time to live on a source queue',
    why: 'While a consumer pauses because of an unhealthy dependency, good messages expire. The broker dead-letters them or, without a dead-letter exchange, drops them.',
    fix: 'remove message-ttl: {command:text}',
    roles: ['source'],
    inspect: ({ setting }) => (isSet(setting('message-ttl')) ? withoutTtl(setting) : undefined),
  },
  {
    id: 'rabbitmq.delivery-limit-drops',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a delivery limit without a dead-letter exchange',
    why: 'After that many deliveries without an acknowledgement, the broker deletes the message. A crash counts for every message in flight, so good ones are deleted too. Since 4.0 the default limit is 20.',
    fix: 'raise the limit, and add a dead-letter exchange to a source queue: {command:text}',
    roles: ['source', 'deadLetters', 'confirmations'],
    inspect: (placed, facts) => {
      const limit = limitOf(placed, facts)
      const canLose = limit !== undefined && !isSet(placed.setting('dead-letter-exchange'))
      return canLose
        ? { found: `delivery-limit ${limit}, no dead-letter-exchange`, wants: RAISED }
        : undefined
    },
  },
  {
    id: 'rabbitmq.delivery-limit-low',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a delivery limit that a few crashes can reach',
    why: 'A crash counts for every message in flight: good messages are dead-lettered with the bad one.',
    fix: 'raise it: {command:text}',
    roles: ['source'],
    inspect: (placed, facts) => {
      const limit = limitOf(placed, facts)
      const isLow = limit !== undefined && isSet(placed.setting('dead-letter-exchange'))
      return isLow ? { found: `delivery-limit ${limit}`, wants: RAISED } : undefined
    },
  },
  {
    id: 'rabbitmq.delivery-limit-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a quorum source queue without a delivery limit, before RabbitMQ 4.0',
    why: 'A message that crashes its consumer is delivered again forever, unless the consumer detects it.',
    fix: 'set a high limit: {command:text}',
    roles: ['source'],
    inspect: ({ queue, setting }, facts) =>
      queue.type === 'quorum' && isBefore(facts, 4, 0) && !isSet(setting('delivery-limit'))
        ? { found: 'delivery-limit not set', wants: RAISED }
        : undefined,
  },
  {
    id: 'rabbitmq.no-dead-letter-exchange',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a source queue without a dead-letter exchange',
    why: 'The broker deletes messages that are rejected, expire or reach a limit.',
    fix: 'create one and use it: {command:text}',
    roles: ['source'],
    inspect: (placed) =>
      isSet(placed.setting('dead-letter-exchange'))
        ? undefined
        : { found: 'dead-letter-exchange not set', wants: deadLetteringOf(placed) },
  },
  {
    id: 'rabbitmq.dead-letter-strategy',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a quorum queue that dead-letters at most once',
    why: 'The broker removes a message before the target queue has stored it: a node restart at that time loses it.',
    fix: 'dead-letter at least once: {command:text}',
    roles: DEAD_LETTERING_ROLES,
    inspect: (placed) =>
      hasDeadLettering(placed) && placed.setting('dead-letter-strategy') !== 'at-least-once'
        ? {
            found: `dead-letter-strategy ${text(placed.setting('dead-letter-strategy'))}`,
            wants: AT_LEAST_ONCE,
          }
        : undefined,
  },
  {
    id: 'rabbitmq.dead-letter-overflow',
    severity: 'loss',
    caps: 'C',
    looksFor: 'at-least-once dead-lettering without overflow reject-publish',
    why: 'The strategy is set but has no effect: with any other overflow, the broker silently falls back to at most once.',
    fix: 'set overflow to reject-publish: {command:text}',
    roles: DEAD_LETTERING_ROLES,
    inspect: (placed) =>
      hasDeadLettering(placed) &&
      placed.setting('dead-letter-strategy') === 'at-least-once' &&
      placed.setting('overflow') !== 'reject-publish'
        ? { found: `overflow ${text(placed.setting('overflow'))}`, wants: AT_LEAST_ONCE }
        : undefined,
  },
]

const RAISED: Settings = { 'delivery-limit': HIGH_LIMIT }
const AT_LEAST_ONCE: Settings = {
  'dead-letter-strategy': 'at-least-once',
  overflow: 'reject-publish',
}

/** Checks the settings that a policy can change. */
export const SETTING_CHECKS: readonly Check<RabbitmqFacts>[] = CHECKS.map(
  ({ roles, inspect, ...check }) => ({
    ...check,
    hits: onQueues(roles, (placed, facts) => {
      const found = inspect(placed, facts)?.found
      return found === undefined
        ? undefined
        : { found, fill: { command: repairOf(facts, placed, wantedOf(placed, facts)) } }
    }),
  }),
)

/** Returns the wanted settings of all findings of a queue. Only one policy applies to it, so each fix contains all. */
const wantedOf = (placed: QueueWithRole, facts: RabbitmqFacts): Settings =>
  Object.fromEntries(
    CHECKS.filter(({ roles }) => roles.includes(placed.role)).flatMap(({ inspect }) =>
      Object.entries(inspect(placed, facts)?.wants ?? {}),
    ),
  )

const withoutTtl = (setting: QueueWithRole['setting']): SettingProblem => ({
  found: `message-ttl ${text(setting('message-ttl'))} ms`,
  wants: { 'message-ttl': undefined },
})

/** Returns the dead-letter settings with the names of the transport. Only quorum queues have a strategy. */
const deadLetteringOf = ({ queue: { name, type } }: QueueWithRole): Settings => ({
  'dead-letter-exchange': `${name}.dlx`,
  'dead-letter-routing-key': name,
  ...(type === 'quorum' ? AT_LEAST_ONCE : {}),
})

/** Returns whether the queue dead-letters with a strategy: a quorum queue with a dead-letter exchange. */
const hasDeadLettering = ({ queue, setting }: QueueWithRole) =>
  queue.type === 'quorum' && isSet(setting('dead-letter-exchange'))

/** Returns the delivery limit if it is low enough to be reached. Only quorum queues have one. */
function limitOf({ queue, setting }: QueueWithRole, facts: RabbitmqFacts): number | undefined {
  if (queue.type !== 'quorum') return undefined
  const isSince4 = facts.version !== undefined && !isBefore(facts, 4, 0)
  const limit = setting('delivery-limit') ?? (isSince4 ? DEFAULT_LIMIT : undefined)
  return typeof limit === 'number' && limit >= 0 && limit < LOW_LIMIT ? limit : undefined
}
