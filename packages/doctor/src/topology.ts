import type { KafkaFacts } from './kafka/facts.ts'
import { placedIn as topicsIn } from './kafka/look.ts'
import { deadLetterTopics, replayedTopic, retryTopics } from './kafka/names.ts'
import type { NatsFacts } from './nats/facts.ts'
import { placedIn as streamsIn } from './nats/look.ts'
import { deadLetterStream, retryStream } from './nats/names.ts'
import type { RabbitmqFacts } from './rabbitmq/facts.ts'
import { deadLetterTargets, type QueueWithRole, placedIn as queuesIn } from './rabbitmq/roles.ts'
import { visible } from './visible.ts'

/** The purpose of a queue, topic or stream. */
export type TopologyNodeRole = 'source' | 'retry' | 'deadLetters' | 'confirmations'

/** A queue, topic or stream. */
export interface TopologyNode {
  readonly name: string
  readonly role: TopologyNodeRole
  /** Short description: type, time to live, partitions, policy. */
  readonly about: string
}

/** A route of messages between two queues, topics or streams. */
export interface Route {
  readonly from: string
  readonly to: string
  /** Reason for the route, such as `retry by billing` or `after the delay`. */
  readonly because: string
}

export interface TopologyFacts {
  readonly places: readonly TopologyNode[]
  readonly routes: readonly Route[]
}

/** Returns the queues of a RabbitMQ broker, and the dead-letter routes between them. */
export function rabbitmqTopology(facts: RabbitmqFacts): TopologyFacts {
  const placed = queuesIn(facts)
  return {
    places: placed.map(({ queue, role, setting }) => ({
      name: queue.name,
      role: role === 'other' ? 'source' : role,
      about: [
        queue.type,
        setting('message-ttl') === undefined ? '' : `waits ${String(setting('message-ttl'))} ms`,
        queue.policyName === undefined ? '' : `policy ${queue.policyName}`,
      ]
        .filter((part) => part !== '')
        .join(', '),
    })),
    routes: placed.flatMap((one) => routesFrom(facts, one)),
  }
}

function routesFrom(facts: RabbitmqFacts, placed: QueueWithRole): readonly Route[] {
  const { queue, setting } = placed
  const exchange = setting('dead-letter-exchange')
  const because =
    placed.role === 'retry' ? 'after the delay' : `by ${String(exchange) || 'default exchange'}`
  return (deadLetterTargets(facts, placed) ?? []).map((to) => ({ from: queue.name, to, because }))
}

/** Returns the topics of a Kafka cluster, and the routes between them that a group uses. */
export function kafkaTopology(facts: KafkaFacts): TopologyFacts {
  const places = topicsIn(facts).map(({ topic, role }) => ({
    name: topic.name,
    role,
    about: `${topic.partitions.length} partitions, kept ${topic.config['retention.ms'] ?? '?'} ms`,
  }))
  const present = new Set(places.map(({ name }) => name))
  const routes = facts.sources.flatMap((source) => [
    ...retryTopics(source).flatMap((retry) => [
      { from: source.topic, to: retry, because: `retry by ${source.group}` },
      { from: retry, to: source.topic, because: 'after the delay' },
    ]),
    ...deadLetterTopics(source).map((to) => ({
      from: source.topic,
      to,
      because: `dead-lettered by ${source.group}`,
    })),
    { from: source.topic, to: replayedTopic(source), because: 'replay finished' },
  ])
  return { places, routes: routes.filter(({ from, to }) => present.has(from) && present.has(to)) }
}

/** Returns the streams of consumers of a NATS server, and the routes between them. */
export function natsTopology(facts: NatsFacts): TopologyFacts {
  const places = streamsIn(facts).map(({ stream, role }) => ({
    name: stream.name,
    role,
    about: `${stream.retention}, ${stream.storage}, replicas: ${stream.replicas}`,
  }))
  const present = new Set(places.map(({ name }) => name))
  const routes = facts.sources.flatMap((source) => {
    const { stream, consumer } = source
    const [retry, dead] = [retryStream(source), deadLetterStream(source)]
    return [
      { from: stream, to: retry, because: `retry by ${consumer}` },
      { from: stream, to: dead, because: `dead-lettered by ${consumer}` },
      { from: retry, to: dead, because: `dead-lettered by ${consumer}` },
    ]
  })
  return { places, routes: routes.filter(({ from, to }) => present.has(from) && present.has(to)) }
}

const ORDER: readonly TopologyNodeRole[] = ['source', 'retry', 'deadLetters', 'confirmations']

/** Returns the lines of a tree: each source with its queues or topics and their routes. */
export function asTree({ places, routes }: TopologyFacts): readonly string[] {
  const sources = places.filter(({ role }) => role === 'source')
  const ofSource = (name: string) =>
    places
      .filter((place) => place.role !== 'source' && ownerOf(place.name, sources) === name)
      .toSorted((one, other) => ORDER.indexOf(one.role) - ORDER.indexOf(other.role))
  const alone = places.filter(
    (place) => place.role !== 'source' && ownerOf(place.name, sources) === undefined,
  )
  const line = ({ name, about }: TopologyNode) => {
    const targets = [...new Set(routes.filter(({ from }) => from === name).map(({ to }) => to))]
    return visible(`${name} (${about})${targets.length === 0 ? '' : ` -> ${targets.join(', ')}`}`)
  }
  return [
    ...sources.flatMap((source) => {
      const own = ofSource(source.name)
      return [
        line(source),
        ...own.map((place, index) => `${index === own.length - 1 ? '└─' : '├─'} ${line(place)}`),
      ]
    }),
    ...alone.map(line),
  ]
}

/** Returns the source with the longest name that is a prefix of this name. */
const ownerOf = (name: string, sources: readonly TopologyNode[]): string | undefined =>
  sources
    .map((source) => source.name)
    // Names of topics and queues are joined with dots, those of streams with hyphens.
    .filter((source) => name.startsWith(`${source}.`) || name.startsWith(`${source}-`))
    .toSorted((one, other) => other.length - one.length)[0]

/** Returns a Mermaid flowchart. Nodes are numbered, because names may contain any character. */
export function asMermaid({ places, routes }: TopologyFacts): string {
  const ids = new Map(places.map(({ name }, index) => [name, `p${index}`]))
  const nodes = places.map(({ name }) => `  ${ids.get(name)}["${escaped(name)}"]`)
  const known = routes.filter(({ from, to }) => ids.has(from) && ids.has(to))
  const arrows = known.map(
    ({ from, to, because }) => `  ${ids.get(from)} -->|"${escaped(because)}"| ${ids.get(to)}`,
  )
  return ['flowchart LR', ...nodes, ...arrows, ''].join('\n')
}

const escaped = (text: string) =>
  text.replace(/[^\p{L}\p{N} .:_/-]/gu, (sign) => `#${sign.codePointAt(0) ?? 0};`)
