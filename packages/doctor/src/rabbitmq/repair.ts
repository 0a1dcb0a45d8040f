import { shell } from '../quote.ts'
import { visible } from '../visible.ts'
import type { PolicyFacts, QueueFacts, RabbitmqFacts, Settings } from './facts.ts'
import { only, text } from './look.ts'
import { routeTo } from './repair-route.ts'
import { type Placed, targetsOf } from './roles.ts'

/**
 * What to do so that a queue has these settings; undefined means: not set at all. One policy applies to a
 * queue, and setting it replaces all that it says: so the command has what it says now, too.
 */
export function repairOf(facts: RabbitmqFacts, placed: Placed, wanted: Settings): string {
  const { queue } = placed
  const entries = Object.entries(wanted).filter(([name, value]) => placed.setting(name) !== value)
  const changes = Object.fromEntries(entries.filter((entry) => isPoliced(queue, entry)))
  const { command, note } = policyFor(facts, queue, changes)
  const commands = [routeOf(facts, placed, wanted), command].filter((one) => one !== undefined)
  const notes = [note, anew(entries.filter((entry) => isDeclared(queue, entry)))].filter(
    (one) => one !== undefined,
  )
  // A comment: the line can be pasted as it is.
  return [commands.join(' && '), notes.join('; ')].filter((part) => part !== '').join(' # ')
}

type Entry = readonly [name: string, value: unknown]

/** No argument says it, or the policy says otherwise too. */
const isPoliced = ({ arguments: own, policy }: QueueFacts, [name, value]: Entry) =>
  own[name] === undefined || (policy[name] !== undefined && policy[name] !== value)

/** An argument says otherwise, and counts whatever a policy says. */
const isDeclared = ({ arguments: own }: QueueFacts, [name, value]: Entry) =>
  own[name] !== undefined && own[name] !== value

/** Only a queue that is declared again has other arguments. */
function anew(entries: readonly Entry[]): string | undefined {
  if (entries.length === 0) return undefined
  const parts = entries.map(([name, value]) =>
    value === undefined ? `without x-${name}` : `with x-${name}: ${safely(text(value))}`,
  )
  return `move its messages, delete it and declare it anew ${parts.join(' and ')}`
}

/** Where the dead letters of a source go, should that not be there. What is not known is left as it is. */
function routeOf(facts: RabbitmqFacts, { queue, role, setting }: Placed, wanted: Settings) {
  const exchange = setting('dead-letter-exchange') ?? wanted['dead-letter-exchange']
  const key = setting('dead-letter-routing-key') ?? wanted['dead-letter-routing-key']
  if (role !== 'source' || typeof exchange !== 'string') return undefined
  const known = typeof key === 'string' ? key : undefined
  const isNew = setting('dead-letter-exchange') === undefined
  const reached = targetsOf(facts, exchange, known) ?? (isNew ? [] : [queue.name])
  return reached.length > 0 ? undefined : routeTo(facts, queue.name, exchange, known)
}

interface Change {
  readonly command?: string
  readonly note?: string
}

function policyFor(facts: RabbitmqFacts, queue: QueueFacts, changes: Settings): Change {
  const names = Object.keys(changes)
  if (names.length === 0) return {}
  const applied = facts.policies?.find(({ name }) => name === queue.policyName)
  // Setting one without knowing what it takes the place of is how settings get lost.
  if (facts.policies === undefined || (applied === undefined && queue.policyName !== undefined)) {
    return { note: `the policies could not be read; add ${said(changes)} to the one that applies` }
  }
  const definition = { ...applied?.definition, ...changes }
  if (names.every((name) => applied?.definition[name] === changes[name])) {
    return { note: `an operator policy says otherwise; change it to ${said(changes)}` }
  }
  return applied === undefined
    ? { command: setPolicy(facts, ownPolicy(facts, queue, definition)) }
    : changed(facts, queue, applied, definition)
}

/** Of the policy that applies, when it is for this queue alone; or else by one of its own above it. */
function changed(
  facts: RabbitmqFacts,
  queue: QueueFacts,
  applied: PolicyFacts,
  definition: Settings,
): Change {
  const isEmpty = Object.values(definition).every((value) => value === undefined)
  if (isOwn(facts, queue, applied)) {
    const { vhost } = facts
    // The broker takes no policy that says nothing.
    return isEmpty
      ? { command: `rabbitmqctl clear_policy --vhost ${shell(vhost)} ${shell(applied.name)}` }
      : { command: setPolicy(facts, { ...applied, definition }) }
  }
  if (isEmpty) {
    return {
      note: `in the policy ${safely(applied.name)}, which is for others too, or leave this queue out of its pattern`,
    }
  }
  const priority = applied.priority + 1
  return {
    command: setPolicy(facts, { ...ownPolicy(facts, queue, definition), priority }),
    note: `a policy of its own above ${safely(applied.name)}, which is for others too: what that one says later does not reach this queue`,
  }
}

const said = (changes: Settings) =>
  Object.entries(changes)
    .map(([name, value]) => (value === undefined ? `no ${name}` : `${name} ${safely(text(value))}`))
    .join(', ')

/** In a comment: with a line break in the name, what follows it would be a command. */
const safely = (name: string) => shell(visible(name))

/** Made for this queue, and in force for no other. Most people do not escape the dots. */
const isOwn = ({ queues = [] }: RabbitmqFacts, { name }: QueueFacts, policy: PolicyFacts) =>
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
    // What is to go is undefined, and JSON leaves it out.
    ...[name, pattern, JSON.stringify(definition)].map(shell),
  ].join(' ')
