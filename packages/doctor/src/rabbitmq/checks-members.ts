import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { isSet, onQueues, text } from './look.ts'
import type { Role } from './roles.ts'

/** What must keep what it was given, whatever it is for. */
const KEEPERS: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** A message is acknowledged within 30 min, or its consumer is stopped; when nothing is said. */
const CONSUMER_TIMEOUT_MS = 1_800_000
/** Three members are the fewest of which one may be lost. */
const ENOUGH_MEMBERS = 3

const ANEW = 'move its messages, delete it and declare it anew'

/** Who has the queues, and how they are handed out. */
export const MEMBER_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.consumer-timeout',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a consumer timeout that is shorter than a handler may take',
    why: 'The broker stops the consumer and hands its messages out again while handlers still work on them.',
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
    looksFor: 'a quorum queue with fewer than three members in a cluster that has the nodes',
    why: 'With one or two members the loss of one node takes the queue out of service or away.',
    fix: 'rabbitmq-queues grow NODE all --vhost-pattern {vhostPattern} --queue-pattern {pattern}, for nodes that have no member',
    hits: onQueues(KEEPERS, ({ queue: { type, members } }, { nodes = [] }) =>
      type === 'quorum' &&
      nodes.length >= ENOUGH_MEMBERS &&
      members !== undefined &&
      members.length < ENOUGH_MEMBERS
        ? `${members.length} of ${nodes.length} nodes`
        : undefined,
    ),
  },
  {
    id: 'rabbitmq.even-members',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a quorum queue with an even number of members',
    why: 'The last one adds work and no safety: four survive the loss of one node, as three do.',
    fix: 'rabbitmq-queues grow NODE all --vhost-pattern {vhostPattern} --queue-pattern {pattern}, or shrink by one',
    hits: onQueues(KEEPERS, ({ queue: { members = [] } }) =>
      members.length > ENOUGH_MEMBERS && members.length % 2 === 0
        ? `${members.length} members`
        : undefined,
    ),
  },
  {
    id: 'rabbitmq.members-offline',
    severity: 'delay',
    caps: 'A',
    looksFor: 'members of a queue that are not online',
    why: 'It survives fewer further losses than it seems to, and stops without a majority.',
    fix: 'start the nodes that have the other members; remove those that are gone: rabbitmq-queues delete_member --vhost {vhost} {subject} NODE',
    hits: onQueues(KEEPERS, ({ queue: { members, online } }) =>
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
    why: 'What is more urgent overtakes for ever: messages of low priority, and their retries, may never be handled.',
    fix: `use a queue for each priority; ${ANEW} without x-max-priority`,
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
    why: 'x-queue-mode does nothing for quorum queues and nothing at all since 3.12: it only looks as if memory were bounded.',
    fix: 'remove x-queue-mode from the queue or its policy',
    hits: onQueues(KEEPERS, ({ setting }) =>
      isSet(setting('queue-mode')) ? `queue-mode ${text(setting('queue-mode'))}` : undefined,
    ),
  },
  {
    id: 'rabbitmq.policy-overridden',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a policy that says something else than the arguments of a queue',
    why: 'Of words the argument counts, of numbers the smaller one: the policy is not in force, although it is shown as applied.',
    fix: 'remove {keys} from the policy, or declare the queue anew without these arguments',
    hits: onQueues(KEEPERS, ({ queue }) => {
      const keys = Object.keys(queue.policy).filter(
        (key) => isSet(queue.arguments[key]) && queue.arguments[key] !== queue.policy[key],
      )
      if (keys.length === 0) return undefined
      const said = keys.map(
        (key) => `${key} ${text(queue.arguments[key])}, not ${text(queue.policy[key])}`,
      )
      return {
        found: `policy ${text(queue.policyName)}: ${said.join('; ')}`,
        fill: { keys: keys.join(', ') },
      }
    }),
  },
]
