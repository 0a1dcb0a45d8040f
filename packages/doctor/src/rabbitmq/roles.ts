import type { QueueFacts, RabbitmqFacts } from './facts.ts'

/** The purpose of a queue. `other` queues are ignored. */
export type Role = 'source' | 'retry' | 'deadLetters' | 'confirmations' | 'other'

export interface QueueWithRole {
  readonly queue: QueueFacts
  readonly role: Role
  readonly setting: (name: string) => unknown
}

const DEAD_LETTERS = /\.dlq(\.quarantine\.[a-z]+)?$/
const CONFIRMATIONS = /\.replayed$/
const DELAY = /\.delay\.[0-9a-z]+$/

/** Returns the selected queues with their role. */
export function placedIn(facts: RabbitmqFacts): readonly QueueWithRole[] {
  const placed = (facts.queues ?? []).map((queue) => {
    const setting = settingOf(queue)
    return { queue, setting, role: roleByName(queue, facts) ?? roleBySettings(setting) }
  })
  const reached = new Set(
    placed
      .filter(({ role, queue }) => role === 'source' && belongsToSources(facts, queue.name))
      .flatMap((source) => deadLetterTargets(facts, source) ?? []),
  )
  return placed
    .map((one) => (one.role === 'other' && reached.has(one.queue.name) ? asDeadLetters(one) : one))
    .filter(({ role, queue }) => role !== 'other' && isSelected(facts, queue.name, reached))
}

const asDeadLetters = (placed: QueueWithRole): QueueWithRole => ({ ...placed, role: 'deadLetters' })

function roleByName({ name }: QueueFacts, facts: RabbitmqFacts): Role | undefined {
  if (facts.deadLetterQueues.includes(name) || DEAD_LETTERS.test(name)) return 'deadLetters'
  if (CONFIRMATIONS.test(name)) return 'confirmations'
  const isSource = facts.sources.includes(name) || isQueue(facts, `${name}.dlq`)
  if (isSource) return 'source'
  return DELAY.test(name) ? 'retry' : undefined
}

/** Returns the role by settings: a queue that dead-letters messages after a time to live is a retry queue. */
function roleBySettings(setting: QueueWithRole['setting']): Role {
  if (setting('dead-letter-exchange') === undefined) return 'other'
  return setting('message-ttl') === undefined ? 'source' : 'retry'
}

/** Returns whether a queue is selected: it belongs to a listed source by name, or the source dead-letters to it. */
function isSelected(facts: RabbitmqFacts, name: string, reached: ReadonlySet<string>): boolean {
  return belongsToSources(facts, name) || facts.deadLetterQueues.includes(name) || reached.has(name)
}

const belongsToSources = ({ sources }: RabbitmqFacts, name: string): boolean =>
  sources.length === 0 || sources.some((source) => name === source || name.startsWith(`${source}.`))

export const isQueue = ({ queues = [] }: RabbitmqFacts, name: string): boolean =>
  queues.some((queue) => queue.name === name)

/** Settings for which the broker uses the smaller of argument and policy. For all others, it uses the argument. */
const SMALLER_WINS: ReadonlySet<string> = new Set([
  'delivery-limit',
  'expires',
  'max-length',
  'max-length-bytes',
  'message-ttl',
])

/** Returns a function that returns a setting as the broker applies it. */
function settingOf({ arguments: own, policy }: QueueFacts): (name: string) => unknown {
  return (name) => {
    const [argument, fromPolicy] = [own[name], policy[name]]
    return SMALLER_WINS.has(name) && typeof argument === 'number' && typeof fromPolicy === 'number'
      ? Math.min(argument, fromPolicy)
      : (argument ?? fromPolicy)
  }
}

/** Returns whether the queue dead-letters at least once. Without reject-publish, the broker silently falls back. */
export const isAtLeastOnce = ({ queue, setting }: QueueWithRole): boolean =>
  queue.type === 'quorum' &&
  setting('dead-letter-strategy') === 'at-least-once' &&
  setting('overflow') === 'reject-publish'

/** Returns the queues that receive the dead letters of a queue; undefined without an exchange, or if they are unknown. */
export function deadLetterTargets(
  facts: RabbitmqFacts,
  { setting }: QueueWithRole,
): readonly string[] | undefined {
  const exchange = setting('dead-letter-exchange')
  const key = setting('dead-letter-routing-key')
  if (typeof exchange !== 'string') return undefined
  return targetsOf(facts, exchange, typeof key === 'string' ? key : undefined)
}

/** 8 levels of exchanges bound to exchanges: deeper than in practice, and a limit for cycles. */
const MAX_DEPTH = 8

/** Returns the queues that an exchange reaches. Without a key, the keys of messages are unknown, so all bindings count. */
export function targetsOf(
  facts: RabbitmqFacts,
  exchange: string,
  key: string | undefined,
  depth = 0,
): readonly string[] | undefined {
  const { exchanges, bindings, queues } = facts
  if (exchanges === undefined || bindings === undefined || queues === undefined) return undefined
  if (exchange === '') return key === undefined ? undefined : isQueue(facts, key) ? [key] : []
  const found = exchanges.find(({ name }) => name === exchange)
  if (found === undefined || depth > MAX_DEPTH) return []
  const reached = bindings
    .filter((binding) => binding.exchange === exchange && matches(found.type, binding.key, key))
    .map(({ to, toKind }) => (toKind === 'queue' ? [to] : targetsOf(facts, to, key, depth + 1)))
  return reached.includes(undefined)
    ? undefined
    : [...new Set(reached.flatMap((some) => some ?? []))]
}

function matches(type: string, bound: string, key: string | undefined): boolean {
  if (key === undefined || type === 'fanout') return true
  if (type === 'direct') return bound === key
  // Headers and types of plugins route by what is not known here: they count as reaching.
  return type === 'topic' ? topicMatches(bound.split('.'), key.split('.')) : true
}

function topicMatches(pattern: readonly string[], words: readonly string[]): boolean {
  const [head, ...rest] = pattern
  if (head === undefined) return words.length === 0
  if (head === '#') {
    return (
      words.some((_, index) => topicMatches(rest, words.slice(index))) || topicMatches(rest, [])
    )
  }
  const [word, ...others] = words
  return word !== undefined && (head === '*' || head === word) && topicMatches(rest, others)
}
