import { shell } from '../quote.ts'
import { visible } from '../visible.ts'
import type { PolicyFacts, QueueFacts, RabbitmqFacts, Settings } from './facts.ts'
import { only, text } from './look.ts'
import { routeTo } from './repair-route.ts'
import { type QueueWithRole, targetsOf } from './roles.ts'

/**
 * Returns a command that gives a queue these settings; undefined means not set. One policy applies to a queue, and
 * setting a policy replaces all of its values. The command therefore contains the current values too.
 */
export function repairOf(facts: RabbitmqFacts, placed: QueueWithRole, wanted: Settings): string {
  const { queue } = placed
  const entries = Object.entries(wanted).filter(([name, value]) => placed.setting(name) !== value)
  const changes = Object.fromEntries(entries.filter((entry) => isPolicyChange(queue, entry)))
  const { command, note } = policyFor(facts, queue, changes)
  const commands = [routeOf(facts, placed, wanted), command].filter((one) => one !== undefined)
  const notes = [note, redeclare(entries.filter((entry) => isArgumentChange(queue, entry)))].filter(
    (one) => one !== undefined,
  )
  // Notes are a shell comment, so that the line can be pasted unchanged.
  return [commands.join(' && '), notes.join('; ')].filter((part) => part !== '').join(' # ')
}

type Entry = readonly [name: string, value: unknown]

/** Returns whether a policy must change: no argument sets the value, or the policy sets a different one. */
const isPolicyChange = ({ arguments: own, policy }: QueueFacts, [name, value]: Entry) =>
  own[name] === undefined || (policy[name] !== undefined && policy[name] !== value)

/** Returns whether an argument sets a different value, which wins over any policy. */
const isArgumentChange = ({ arguments: own }: QueueFacts, [name, value]: Entry) =>
  own[name] !== undefined && own[name] !== value

/** Returns the note for arguments, which change only when the queue is declared again. */
function redeclare(entries: readonly Entry[]): string | undefined {
  if (entries.length === 0) return undefined
  const parts = entries.map(([name, value]) =>
    value === undefined ? `without x-${name}` : `with x-${name}: ${quoteVisible(text(value))}`,
  )
  return `move its messages, delete it and declare it again ${parts.join(' and ')}`
}

/** Returns the command for a missing dead-letter route of a source. An unknown route is not changed. */
function routeOf(facts: RabbitmqFacts, { queue, role, setting }: QueueWithRole, wanted: Settings) {
  const exchange = setting('dead-letter-exchange') ?? wanted['dead-letter-exchange']
  const key = setting('dead-letter-routing-key') ?? wanted['dead-letter-routing-key']
  if (role !== 'source' || typeof exchange !== 'string') return undefined
  const known = typeof key === 'string' ? key : undefined
  const isNew = setting('dead-letter-exchange') === undefined
  const reached = targetsOf(facts, exchange, known) ?? (isNew ? [] : [queue.name])
  return reached.length > 0 ? undefined : routeTo(facts, queue.name, exchange, known)
}

interface PolicyChange {
  readonly command?: string
  readonly note?: string
}

function policyFor(facts: RabbitmqFacts, queue: QueueFacts, changes: Settings): PolicyChange {
  const names = Object.keys(changes)
  if (names.length === 0) return {}
  const applied = facts.policies?.find(({ name }) => name === queue.policyName)
  // A new policy that replaces an unknown one could remove its settings.
  if (facts.policies === undefined || (applied === undefined && queue.policyName !== undefined)) {
    return {
      note: `the policies could not be read; add ${describeChanges(changes)} to the policy that applies`,
    }
  }
  const definition = { ...applied?.definition, ...changes }
  if (names.every((name) => applied?.definition[name] === changes[name])) {
    return { note: `an operator policy overrides this; change it to ${describeChanges(changes)}` }
  }
  return applied === undefined
    ? { command: setPolicy(facts, ownPolicy(facts, queue, definition)) }
    : changePolicy(facts, queue, applied, definition)
}

/** Changes the policy that applies if it is only for this queue; otherwise adds a separate policy with a higher priority. */
function changePolicy(
  facts: RabbitmqFacts,
  queue: QueueFacts,
  applied: PolicyFacts,
  definition: Settings,
): PolicyChange {
  const isEmpty = Object.values(definition).every((value) => value === undefined)
  if (isOnlyForQueue(facts, queue, applied)) {
    const { vhost } = facts
    // The broker rejects an empty policy.
    return isEmpty
      ? { command: `rabbitmqctl clear_policy --vhost ${shell(vhost)} ${shell(applied.name)}` }
      : { command: setPolicy(facts, { ...applied, definition }) }
  }
  if (isEmpty) {
    return {
      note: `in the policy ${quoteVisible(applied.name)}, which also applies to other queues; or exclude this queue from its pattern`,
    }
  }
  const priority = applied.priority + 1
  return {
    command: setPolicy(facts, { ...ownPolicy(facts, queue, definition), priority }),
    note: `a separate policy with a higher priority than ${quoteVisible(applied.name)}, which also applies to other queues; later changes of that policy do not affect this queue`,
  }
}

const describeChanges = (changes: Settings) =>
  Object.entries(changes)
    .map(([name, value]) =>
      value === undefined ? `no ${name}` : `${name} ${quoteVisible(text(value))}`,
    )
    .join(', ')

/** Quotes a name for a comment: after a line break in the name, the rest would be a command. */
const quoteVisible = (name: string) => shell(visible(name))

/** Returns whether the policy applies only to this queue. Dots in the pattern are often not escaped. */
const isOnlyForQueue = (
  { queues = [] }: RabbitmqFacts,
  { name }: QueueFacts,
  policy: PolicyFacts,
) =>
  [only(name), `^${name}$`].includes(policy.pattern) &&
  queues.every((queue) => queue.name === name || queue.policyName !== policy.name)

function ownPolicy(facts: RabbitmqFacts, { name }: QueueFacts, definition: Settings): PolicyFacts {
  const taken = new Set(facts.policies?.map((policy) => policy.name))
  const free = [name, `${name}.redrive`].find((one) => !taken.has(one)) ?? `${name}.redrive.own`
  return { name: free, pattern: only(name), applyTo: 'queues', priority: 0, definition }
}

const setPolicy = (
  { vhost }: RabbitmqFacts,
  { name, pattern, applyTo, priority, definition }: PolicyFacts,
): string =>
  [
    `rabbitmqctl set_policy --vhost ${shell(vhost)} --priority ${priority} --apply-to ${shell(applyTo)}`,
    // Values to remove are undefined, and JSON omits them.
    ...[name, pattern, JSON.stringify(definition)].map(shell),
  ].join(' ')
