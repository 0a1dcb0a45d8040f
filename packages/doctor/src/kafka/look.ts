import type { CheckHit, CheckResult } from '../finding.ts'
import type { KafkaFacts, TopicFacts } from './facts.ts'
import {
  belongsTo,
  deadLetterTopic,
  deadLetterTopics,
  type KafkaSource,
  replayedTopic,
} from './names.ts'

/** The purpose of a topic. */
export type Role = 'source' | 'retry' | 'deadLetters' | 'confirmations'

export interface TopicWithRole {
  readonly topic: TopicFacts
  readonly role: Role
  /** The source topic it belongs to, or the topic itself; undefined when the source is missing. */
  readonly source: TopicFacts | undefined
}

/** Returns the topics of the sources with their role. A topic may be the source of several groups. */
export function placedIn({ topics = [], sources }: KafkaFacts): readonly TopicWithRole[] {
  const placed = sources.flatMap((of) => {
    const source = topics.find(({ name }) => name === of.topic)
    return topics
      .filter(({ name }) => belongsTo(of, name))
      .map((topic) => ({ topic, role: roleOf(topic.name, of), source }))
  })
  return [...new Map(placed.map((one) => [one.topic.name, one])).values()]
}

function roleOf(name: string, source: KafkaSource): Role {
  if (name === source.topic) return 'source'
  if ([deadLetterTopic(source), ...deadLetterTopics(source)].includes(name)) return 'deadLetters'
  return name === replayedTopic(source) ? 'confirmations' : 'retry'
}

/** Returns a function that runs `check` on each topic with one of these roles and collects the hits. */
export function onTopics(
  roles: readonly Role[],
  check: (placed: TopicWithRole, facts: KafkaFacts) => CheckResult,
): (facts: KafkaFacts) => readonly CheckHit[] {
  return (facts) =>
    placedIn(facts)
      .filter(({ role }) => roles.includes(role))
      .flatMap((placed) => hitOf(placed.topic.name, check(placed, facts)))
}

/** Returns a function that collects a hit for each broker with a wrong setting. */
export function onBrokers(
  name: string,
  isWrong: (value: string) => boolean,
): (facts: KafkaFacts) => readonly CheckHit[] {
  return ({ brokers }) =>
    brokers.flatMap(({ id, config }) => {
      const value = config[name]
      if (value === undefined || !isWrong(value)) return []
      return [{ subject: `broker ${id}`, found: `${name}=${value}` }]
    })
}

/** Returns a function that reports brokers whose newest version of an API is older than this one. */
export const apiBelow =
  (name: string, version: number) =>
  ({ apis }: KafkaFacts): readonly CheckHit[] => {
    const newest = apis?.[name]
    if (newest === undefined || newest >= version) return []
    return [{ subject: 'version', found: `${name} up to version ${newest}` }]
  }

const hitOf = (subject: string, found: CheckResult): readonly CheckHit[] => {
  if (found === undefined) return []
  return [typeof found === 'string' ? { subject, found } : { subject, ...found }]
}

/** Returns a limit, or undefined when it is not set, not readable or unlimited (-1). */
export function boundOf({ config }: TopicFacts, name: string): number | undefined {
  const value = Number(config[name])
  return config[name] === undefined || Number.isNaN(value) || value < 0 ? undefined : value
}

/** Returns the lowest number of replicas of its partitions. */
export const replicasOf = ({ partitions }: TopicFacts): number =>
  Math.min(...partitions.map(({ replicas }) => replicas.length))
