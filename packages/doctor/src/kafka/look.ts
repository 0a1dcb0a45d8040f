import type { Hit } from '../finding.ts'
import type { KafkaFacts, TopicFacts } from './facts.ts'
import {
  belongsTo,
  deadLetterTopic,
  deadLetterTopics,
  type KafkaSource,
  replayedTopic,
} from './names.ts'

/** What a topic is for. */
export type Role = 'source' | 'retry' | 'deadLetters' | 'confirmations'

export interface Placed {
  readonly topic: TopicFacts
  readonly role: Role
  /** The source it belongs to; itself for a source. Undefined when that is missing. */
  readonly source: TopicFacts | undefined
}

/** The topics that hold records on their way, with their role. One may be the source of several groups. */
export function placedIn({ topics = [], sources }: KafkaFacts): readonly Placed[] {
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

type Found = string | undefined | { readonly found: string; readonly fill: Hit['fill'] & object }

/** A hit for each topic of one of these roles on which something is found. */
export function onTopics(
  roles: readonly Role[],
  look: (placed: Placed, facts: KafkaFacts) => Found,
): (facts: KafkaFacts) => readonly Hit[] {
  return (facts) =>
    placedIn(facts)
      .filter(({ role }) => roles.includes(role))
      .flatMap((placed) => hitOf(placed.topic.name, look(placed, facts)))
}

/** A hit for each broker whose setting is not as it should be. */
export function onBrokers(
  name: string,
  isWrong: (value: string) => boolean,
): (facts: KafkaFacts) => readonly Hit[] {
  return ({ brokers }) =>
    brokers.flatMap(({ id, config }) => {
      const value = config[name]
      if (value === undefined || !isWrong(value)) return []
      return [{ subject: `broker ${id}`, found: `${name}=${value}` }]
    })
}

const hitOf = (subject: string, found: Found): readonly Hit[] => {
  if (found === undefined) return []
  return [typeof found === 'string' ? { subject, found } : { subject, ...found }]
}

/** Undefined when it is not set, not readable, or for ever (-1). */
export function boundOf({ config }: TopicFacts, name: string): number | undefined {
  const value = Number(config[name])
  return config[name] === undefined || Number.isNaN(value) || value < 0 ? undefined : value
}

/** The fewest replicas of any of its partitions. */
export const replicasOf = ({ partitions }: TopicFacts): number =>
  Math.min(...partitions.map(({ replicas }) => replicas.length))
