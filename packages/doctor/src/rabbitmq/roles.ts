import type { QueueFacts, RabbitmqFacts } from './facts.ts'

/** What a queue is for. `other` is none of our business. */
export type Role = 'source' | 'retry' | 'deadLetters' | 'confirmations' | 'other'

export interface Placed {
  readonly queue: QueueFacts
  readonly role: Role
  readonly setting: (name: string) => unknown
}

const DEAD_LETTERS = /\.dlq(\.quarantine\.[a-z]+)?$/
const CONFIRMATIONS = /\.replayed$/
const DELAY = /\.delay\.[0-9a-z]+$/

/** The queues that hold messages on their way, with their role. */
export function placedIn(facts: RabbitmqFacts): readonly Placed[] {
  const placed = (facts.queues ?? []).map((queue) => {
    const setting = settingOf(queue)
    return { queue, setting, role: roleByName(queue, facts) ?? roleBySettings(setting) }
  })
  const reached = new Set(
    placed
      .filter(({ role, queue }) => role === 'source' && isOurs(facts, queue.name))
      .flatMap((source) => deadLetterTargets(facts, source) ?? []),
  )
  return placed
    .map((one) => (one.role === 'other' && reached.has(one.queue.name) ? asDeadLetters(one) : one))
    .filter(({ role, queue }) => role !== 'other' && isAskedFor(facts, queue.name, reached))
}

const asDeadLetters = (placed: Placed): Placed => ({ ...placed, role: 'deadLetters' })

function roleByName({ name }: QueueFacts, facts: RabbitmqFacts): Role | undefined {
  if (facts.deadLetterQueues.includes(name) || DEAD_LETTERS.test(name)) return 'deadLetters'
  if (CONFIRMATIONS.test(name)) return 'confirmations'
  const isSource = facts.sources.includes(name) || isQueue(facts, `${name}.dlq`)
  if (isSource) return 'source'
  return DELAY.test(name) ? 'retry' : undefined
}

/** A queue that sends on what has waited long enough is a retry queue, whoever made it. */
function roleBySettings(setting: Placed['setting']): Role {
  if (setting('dead-letter-exchange') === undefined) return 'other'
  return setting('message-ttl') === undefined ? 'source' : 'retry'
}

/** When sources are named, what belongs to them: by name, or because they dead-letter to it. */
function isAskedFor(facts: RabbitmqFacts, name: string, reached: ReadonlySet<string>): boolean {
  return isOurs(facts, name) || facts.deadLetterQueues.includes(name) || reached.has(name)
}

const isOurs = ({ sources }: RabbitmqFacts, name: string): boolean =>
  sources.length === 0 || sources.some((source) => name === source || name.startsWith(`${source}.`))

export const isQueue = ({ queues = [] }: RabbitmqFacts, name: string): boolean =>
  queues.some((queue) => queue.name === name)

/** Of these the broker takes the smaller of argument and policy; of all others the argument. */
const SMALLER_WINS: ReadonlySet<string> = new Set([
  'delivery-limit',
  'expires',
  'max-length',
  'max-length-bytes',
  'message-ttl',
])

/** A setting as the broker applies it. */
function settingOf({ arguments: own, policy }: QueueFacts): (name: string) => unknown {
  return (name) => {
    const [argument, policed] = [own[name], policy[name]]
    return SMALLER_WINS.has(name) && typeof argument === 'number' && typeof policed === 'number'
      ? Math.min(argument, policed)
      : (argument ?? policed)
  }
}

/** At least once is in force only together with reject-publish; else the broker falls back silently. */
export const isAtLeastOnce = ({ queue, setting }: Placed): boolean =>
  queue.type === 'quorum' &&
  setting('dead-letter-strategy') === 'at-least-once' &&
  setting('overflow') === 'reject-publish'

/** The queues that a queue's dead letters reach. Undefined when it has no exchange, or nobody can say. */
export function deadLetterTargets(
  facts: RabbitmqFacts,
  { setting }: Placed,
): readonly string[] | undefined {
  const exchange = setting('dead-letter-exchange')
  const key = setting('dead-letter-routing-key')
  if (typeof exchange !== 'string') return undefined
  return targetsOf(facts, exchange, typeof key === 'string' ? key : undefined)
}

/** Exchanges bound to exchanges: deeper than anyone builds, and the end of a circle. */
const DEEPEST = 8

/** Without a key, a message keeps its own, which only the message knows: then all bindings count. */
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
  if (found === undefined || depth > DEEPEST) return []
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
