import type { Check } from '../finding.ts'
import type { RabbitmqFacts, Settings } from './facts.ts'
import { boundOf, isBefore, isBounded, isSet, onQueues, text } from './look.ts'
import { HIGH_LIMIT } from './repair-route.ts'
import { repairOf } from './repair.ts'
import type { Placed, Role } from './roles.ts'

/** What must keep what it was given, whatever it is for. */
const KEEPERS: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** What holds failed messages. */
const ASIDE: readonly Role[] = ['retry', 'deadLetters', 'confirmations']
/** What may send messages on by itself. */
const SENDERS: readonly Role[] = ['source', 'retry', 'deadLetters']

/** Below this the broker may give up before a policy does; ours is a million. */
const LOW_LIMIT = 1_000
/** Since 4.0, when nothing is said. */
const DEFAULT_LIMIT = 20

/** A setting that a policy can repair: what was found, and how it should be. Undefined: not set at all. */
interface Wrong {
  readonly found: string
  readonly wants: Settings
}

interface Trap extends Omit<Check<RabbitmqFacts>, 'hits'> {
  readonly roles: readonly Role[]
  readonly look: (placed: Placed, facts: RabbitmqFacts) => Wrong | undefined
}

const TRAPS: readonly Trap[] = [
  {
    id: 'rabbitmq.expires',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a queue that expires',
    why: 'Publishing does not count as use: the queue is deleted with the confirmed messages in it when nobody consumed from it for that long, and nothing is dead-lettered.',
    fix: 'remove expires: {command:text}',
    roles: KEEPERS,
    look: ({ setting }) =>
      isSet(setting('expires'))
        ? { found: `expires ${text(setting('expires'))} ms`, wants: { expires: undefined } }
        : undefined,
  },
  {
    id: 'rabbitmq.drop-head',
    severity: 'loss',
    caps: 'C',
    looksFor:
      'a bounded dead-letter, retry or confirmation queue that drops the oldest when it is full',
    why: 'With overflow drop-head, which is the default, each message beyond the bound deletes the oldest one.',
    fix: 'remove the bound, or refuse beyond it: {command:text}',
    roles: ASIDE,
    look: (placed) =>
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
    looksFor: 'a time to live on a dead-letter queue that leads nowhere',
    why: 'Dead letters are deleted when they are that old, whether or not anyone has looked at them. How long they are kept is deadLetter.retention of the policy.',
    fix: 'remove message-ttl: {command:text}',
    roles: ['deadLetters'],
    look: ({ setting }) =>
      isSet(setting('message-ttl')) && !isSet(setting('dead-letter-exchange'))
        ? withoutTtl(setting)
        : undefined,
  },
  {
    id: 'rabbitmq.source-ttl',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a time to live on a source queue',
    why: 'While a consumer pauses for a sick dependency, good messages grow old and are dead-lettered by the broker, or dropped without a dead-letter exchange.',
    fix: 'remove message-ttl: {command:text}',
    roles: ['source'],
    look: ({ setting }) => (isSet(setting('message-ttl')) ? withoutTtl(setting) : undefined),
  },
  {
    id: 'rabbitmq.delivery-limit-drops',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a delivery limit without a dead-letter exchange',
    why: 'After that many deliveries without an answer the broker deletes the message. A crash counts for every message in hand, so good ones go too. Since 4.0 the limit is 20 when nothing is said.',
    fix: 'raise the limit, and give a source queue a dead-letter exchange: {command:text}',
    roles: ['source', 'deadLetters', 'confirmations'],
    look: (placed, facts) => {
      const limit = limitOf(placed, facts)
      const isLosing = limit !== undefined && !isSet(placed.setting('dead-letter-exchange'))
      return isLosing
        ? { found: `delivery-limit ${limit}, no dead-letter-exchange`, wants: RAISED }
        : undefined
    },
  },
  {
    id: 'rabbitmq.delivery-limit-low',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a delivery limit that a few crashes reach',
    why: 'A crash counts for every message in hand: good messages are dead-lettered with the bad one.',
    fix: 'raise it: {command:text}',
    roles: ['source'],
    look: (placed, facts) => {
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
    why: 'A message that kills its consumer comes back for ever, should the consumer not find it out itself.',
    fix: 'set a high one: {command:text}',
    roles: ['source'],
    look: ({ queue, setting }, facts) =>
      queue.type === 'quorum' && isBefore(facts, 4, 0) && !isSet(setting('delivery-limit'))
        ? { found: 'delivery-limit not set', wants: RAISED }
        : undefined,
  },
  {
    id: 'rabbitmq.no-dead-letter-exchange',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a source queue without a dead-letter exchange',
    why: 'What is rejected, expires or reaches a limit is deleted by the broker.',
    fix: 'make one and use it: {command:text}',
    roles: ['source'],
    look: (placed) =>
      isSet(placed.setting('dead-letter-exchange'))
        ? undefined
        : { found: 'dead-letter-exchange not set', wants: deadLetteringOf(placed) },
  },
  {
    id: 'rabbitmq.dead-letter-strategy',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a quorum queue that dead-letters at most once',
    why: 'The broker forgets a message before the queue it goes to has it: a node that restarts at that moment loses it.',
    fix: 'dead-letter at least once: {command:text}',
    roles: SENDERS,
    look: (placed) =>
      isSender(placed) && placed.setting('dead-letter-strategy') !== 'at-least-once'
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
    why: 'The strategy is set and not in force: with any other overflow the broker falls back to at most once without a word.',
    fix: 'set overflow to reject-publish: {command:text}',
    roles: SENDERS,
    look: (placed) =>
      isSender(placed) &&
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

/** Whether the settings that a policy can change let go of messages. */
export const SETTING_CHECKS: readonly Check<RabbitmqFacts>[] = TRAPS.map(
  ({ roles, look, ...check }) => ({
    ...check,
    hits: onQueues(roles, (placed, facts) => {
      const found = look(placed, facts)?.found
      return found === undefined
        ? undefined
        : { found, fill: { command: repairOf(facts, placed, wantedOf(placed, facts)) } }
    }),
  }),
)

/** Of all findings of a queue together: only one policy applies to it, so each fix has to have them all. */
const wantedOf = (placed: Placed, facts: RabbitmqFacts): Settings =>
  Object.fromEntries(
    TRAPS.filter(({ roles }) => roles.includes(placed.role)).flatMap(({ look }) =>
      Object.entries(look(placed, facts)?.wants ?? {}),
    ),
  )

const withoutTtl = (setting: Placed['setting']): Wrong => ({
  found: `message-ttl ${text(setting('message-ttl'))} ms`,
  wants: { 'message-ttl': undefined },
})

/** The names that the transport uses. Only quorum queues know a strategy. */
const deadLetteringOf = ({ queue: { name, type } }: Placed): Settings => ({
  'dead-letter-exchange': `${name}.dlx`,
  'dead-letter-routing-key': name,
  ...(type === 'quorum' ? AT_LEAST_ONCE : {}),
})

/** Only quorum queues know a strategy; what has no exchange sends nothing. */
const isSender = ({ queue, setting }: Placed) =>
  queue.type === 'quorum' && isSet(setting('dead-letter-exchange'))

/** The limit in force when it is low enough to be reached; quorum queues only have one. */
function limitOf({ queue, setting }: Placed, facts: RabbitmqFacts): number | undefined {
  if (queue.type !== 'quorum') return undefined
  const isSince4 = facts.version !== undefined && !isBefore(facts, 4, 0)
  const limit = setting('delivery-limit') ?? (isSince4 ? DEFAULT_LIMIT : undefined)
  return typeof limit === 'number' && limit >= 0 && limit < LOW_LIMIT ? limit : undefined
}
