import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { isSet, onQueues, text } from './look.ts'
import type { Role } from './roles.ts'

/** The roles of all queues that must keep their messages. */
const STORAGE_ROLES: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** 30 minutes: the default time to acknowledge a message, after which the broker stops the consumer. */
const CONSUMER_TIMEOUT_MS = 1_800_000
/** 3 members: the minimum number with which the loss of one is survived. */
const MIN_MEMBERS = 3

const REDECLARE = 'move its messages, delete it and declare it again'

/** Checks the members of the queues, and how messages are delivered. */
export const MEMBER_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.consumer-timeout',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a consumer timeout below the maximum duration of a handler',
    why: 'The broker stops the consumer and delivers its messages again while handlers still work on them.',
    fix: 'set consumer_timeout = {wantedMs} in rabbitmq.conf, or make handlers shorter',
    hits: onQueues(['source'], ({ setting }, { handlerTimeoutMs }) => {
      const set = setting('consumer-timeout')
      const timeoutMs = typeof set === 'number' ? set : CONSUMER_TIMEOUT_MS
      if (handlerTimeoutMs === undefined || handlerTimeoutMs < timeoutMs) return undefined
      const wantedMs = handlerTimeoutMs * 2
      return { found: `${timeoutMs} ms, handlers ${handlerTimeoutMs} ms`, fill: { wantedMs } }
    }),
  },
  {
    id: 'rabbitmq.quorum-members',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a quorum queue with fewer than three members in a cluster with enough nodes',
    why: 'With one or two members, the loss of one node stops or deletes the queue.',
    fix: 'rabbitmq-queues grow NODE all --vhost-pattern {vhostPattern} --queue-pattern {pattern}, for nodes without a member',
    hits: onQueues(STORAGE_ROLES, ({ queue: { type, members } }, { nodes = [] }) =>
      type === 'quorum' &&
      nodes.length >= MIN_MEMBERS &&
      members !== undefined &&
      members.length < MIN_MEMBERS
        ? `${members.length} of ${nodes.length} nodes`
        : undefined,
    ),
  },
  {
    id: 'rabbitmq.even-members',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a quorum queue with an even number of members',
    why: 'The last member adds work but no safety: four members survive the loss of one node, and so do three.',
    fix: 'rabbitmq-queues grow NODE all --vhost-pattern {vhostPattern} --queue-pattern {pattern}, or shrink by one',
    hits: onQueues(STORAGE_ROLES, ({ queue: { members = [] } }) =>
      members.length > MIN_MEMBERS && members.length % 2 === 0
        ? `${members.length} members`
        : undefined,
    ),
  },
  {
    id: 'rabbitmq.members-offline',
    severity: 'delay',
    caps: 'A',
    looksFor: 'offline members of a queue',
    why: 'The queue survives fewer further failures than its number of members suggests, and stops without a majority.',
    fix: 'start the nodes with the other members; remove members that are lost: rabbitmq-queues delete_member --vhost {vhost} {subject} NODE',
    hits: onQueues(STORAGE_ROLES, ({ queue: { members, online } }) =>
      members !== undefined && online !== undefined && online.length < members.length
        ? `${online.length} of ${members.length} online`
        : undefined,
    ),
  },
  {
    id: 'rabbitmq.priority',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a source queue with priorities',
    why: 'Messages of higher priority always come first: messages of low priority, and their retries, may never be handled.',
    fix: `use a queue for each priority; ${REDECLARE} without x-max-priority`,
    hits: onQueues(['source'], ({ setting }) =>
      isSet(setting('max-priority'))
        ? `x-max-priority ${text(setting('max-priority'))}`
        : undefined,
    ),
  },
  {
    id: 'rabbitmq.lazy',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a queue mode, which newer brokers ignore',
    why: 'x-queue-mode has no effect on quorum queues, and none on any queue since 3.12: memory is not limited by it.',
    fix: 'remove x-queue-mode from the queue or its policy',
    hits: onQueues(STORAGE_ROLES, ({ setting }) =>
      isSet(setting('queue-mode')) ? `queue-mode ${text(setting('queue-mode'))}` : undefined,
    ),
  },
  {
    id: 'rabbitmq.policy-overridden',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a policy that differs from the arguments of a queue',
    why: 'For text the argument wins, for numbers the smaller value. The policy has no effect, although it is shown as applied.',
    fix: 'remove {keys} from the policy, or declare the queue again without these arguments',
    hits: onQueues(STORAGE_ROLES, ({ queue }) => {
      const keys = Object.keys(queue.policy).filter(
        (key) => isSet(queue.arguments[key]) && queue.arguments[key] !== queue.policy[key],
      )
      if (keys.length === 0) return undefined
      const differences = keys.map(
        (key) => `${key} ${text(queue.arguments[key])}, not ${text(queue.policy[key])}`,
      )
      return {
        found: `policy ${text(queue.policyName)}: ${differences.join('; ')}`,
        fill: { keys: keys.join(', ') },
      }
    }),
  },
]
