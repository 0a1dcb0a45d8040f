import { type Finding, findIn, type Unreadable, worstFirst } from '../finding.ts'
import { RABBITMQ_CHECKS } from './checks.ts'
import { BROKER_CHECKS } from './checks-broker.ts'
import type { RabbitmqFacts } from './facts.ts'
import { readRabbitmq, readVhosts, type RabbitmqOptions, type Vhosts } from './read.ts'
import { placedIn } from './roles.ts'

/** The checks whose findings are the same in every vhost. */
const OF_BROKER: ReadonlySet<string> = new Set(BROKER_CHECKS.map(({ id }) => id))

/** Reads one vhost, or all vhosts of the broker if the options name neither a vhost nor queues. Worst finding first. */
export async function findInRabbitmq(options: RabbitmqOptions): Promise<readonly Finding[]> {
  const { names, unreadable } = await vhostsOf(options)
  const [first, ...others] = names
  const read = await readRabbitmq(first === undefined ? options : { ...options, vhost: first })
  const facts = read.version === undefined ? read : withUnreadable(read, unreadable)
  if (others.length === 0) return findIn(RABBITMQ_CHECKS, facts)
  const all = [facts]
  // One after the other: a loaded broker answers slowly.
  for (const vhost of others) all.push(await readRabbitmq({ ...options, vhost }))
  return findInAll(all)
}

/** A broker that answers nothing has one reason for all. */
const withUnreadable = (facts: RabbitmqFacts, more: readonly Unreadable[]): RabbitmqFacts => ({
  ...facts,
  unreadable: [...facts.unreadable, ...more],
})

const NONE: Vhosts = { names: [], unreadable: [] }

async function vhostsOf(options: RabbitmqOptions): Promise<Vhosts> {
  const { vhost, management, queues = [], deadLetterQueues = [] } = options
  const isNamed = vhost !== undefined || queues.length + deadLetterQueues.length > 0
  return isNamed || management === undefined ? NONE : readVhosts(options, management)
}

/** Returns the findings of all vhosts. A vhost without queues to check is left out, unless none has any. */
function findInAll(all: readonly RabbitmqFacts[]): readonly Finding[] {
  const isUsed = (facts: RabbitmqFacts) => facts.queues === undefined || placedIn(facts).length > 0
  const used = all.some(isUsed) ? all.filter(isUsed) : all.slice(0, 1)
  const findings = used.flatMap((facts, at) =>
    findIn(RABBITMQ_CHECKS, facts)
      .filter(({ check }) => at === 0 || !OF_BROKER.has(check))
      .map((one) => (OF_BROKER.has(one.check) ? one : inVhost(one, facts.vhost))),
  )
  return worstFirst(findings)
}

/** Adds the vhost to the subject: two vhosts can have queues with the same name. */
const inVhost = (finding: Finding, vhost: string): Finding => ({
  ...finding,
  subject: `${finding.subject} (vhost ${vhost})`,
})
