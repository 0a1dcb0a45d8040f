import type { Check } from '../finding.ts'
import type { KafkaFacts } from './facts.ts'
import { boundOf, onTopics, placedIn, replicasOf, type Role } from './look.ts'
import { neededTopics } from './names.ts'

const ALL: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** What holds records beside the source. */
const ASIDE: readonly Role[] = ['retry', 'deadLetters', 'confirmations']

/** Three replicas are the fewest of which one may be lost while writes go on. */
const ENOUGH_REPLICAS = 3
const ENOUGH_IN_SYNC = 2
/** The longest tier and a week: how long all consumers of a group may be down before a waiting retry is deleted. */
const RETRY_RETENTION_MS = 608_400_000
/** 14 days, as they are made: a control plane that was away for longer has asked a person meanwhile. */
const CONFIRMATION_RETENTION_MS = 1_209_600_000
/** A day: a consumer that pauses in the evening is looked at in the morning. */
const SOURCE_RETENTION_MS = 86_400_000

const ALTER = 'kafka-configs --alter --entity-type topics --entity-name {subject} --add-config'

const setting = (topic: { readonly config: Readonly<Record<string, string>> }, name: string) =>
  `${name}=${topic.config[name] ?? 'not readable'}`

/** Whether the topics keep what they were given, for as long as it is needed. */
export const TOPIC_CHECKS: readonly Check<KafkaFacts>[] = [
  {
    id: 'kafka.replication-factor',
    severity: 'loss',
    caps: 'B',
    looksFor: 'fewer than three replicas',
    why: 'With one replica the loss of a disk is the loss of its records; with two, either writes stop or a single copy is all there is while a broker is down.',
    fix: 'kafka-reassign-partitions --execute, with three brokers for each partition of {subject}',
    hits: onTopics(ALL, ({ topic }) =>
      replicasOf(topic) < ENOUGH_REPLICAS ? `${replicasOf(topic)} of 3 replicas` : undefined,
    ),
  },
  {
    id: 'kafka.min-insync-replicas',
    severity: 'loss',
    caps: 'B',
    looksFor: 'min.insync.replicas below two',
    why: 'A record counts as stored when the leader alone has it: when that broker is lost, so is the record.',
    fix: `${ALTER} min.insync.replicas=2`,
    hits: onTopics(ALL, ({ topic }) => {
      const wanted = boundOf(topic, 'min.insync.replicas')
      // With fewer than two replicas, more of them are what is missing.
      return wanted !== undefined && wanted < ENOUGH_IN_SYNC && replicasOf(topic) >= ENOUGH_IN_SYNC
        ? setting(topic, 'min.insync.replicas')
        : undefined
    }),
  },
  {
    id: 'kafka.no-spare-replica',
    severity: 'delay',
    caps: 'A',
    looksFor: 'min.insync.replicas as high as the number of replicas',
    why: 'No broker may be missing: while one restarts nothing can be written, and hand-offs wait.',
    fix: `${ALTER} min.insync.replicas=2, with three replicas`,
    hits: onTopics(ALL, ({ topic }) => {
      const wanted = boundOf(topic, 'min.insync.replicas') ?? 1
      return replicasOf(topic) > 1 && wanted >= replicasOf(topic)
        ? `${setting(topic, 'min.insync.replicas')}, ${replicasOf(topic)} replicas`
        : undefined
    }),
  },
  {
    id: 'kafka.unclean-leader-election',
    severity: 'loss',
    caps: 'C',
    looksFor: 'unclean leader election',
    why: 'A replica that lacks acknowledged records may become the leader, and then they are gone everywhere.',
    fix: `${ALTER} unclean.leader.election.enable=false`,
    hits: onTopics(ALL, ({ topic }) =>
      topic.config['unclean.leader.election.enable'] === 'true'
        ? setting(topic, 'unclean.leader.election.enable')
        : undefined,
    ),
  },
  {
    id: 'kafka.compacted',
    severity: 'loss',
    caps: 'C',
    looksFor: 'compaction of a retry, dead-letter or confirmation topic',
    why: 'Of two failures with one key only the last is kept, and records without a key are refused.',
    fix: `${ALTER} cleanup.policy=delete`,
    hits: onTopics(ASIDE, ({ topic }) =>
      topic.config['cleanup.policy']?.includes('compact')
        ? setting(topic, 'cleanup.policy')
        : undefined,
    ),
  },
  {
    id: 'kafka.retry-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry topic that is kept for less than the longest delay and a week',
    why: 'Records that wait for their retry are deleted before they are due, or while all consumers of the group are down.',
    fix: `${ALTER} retention.ms=${RETRY_RETENTION_MS}`,
    hits: onTopics(['retry'], ({ topic }) => shorter(topic, RETRY_RETENTION_MS)),
  },
  {
    id: 'kafka.dead-letter-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a dead-letter topic that is kept for less than dead letters are',
    why: 'Dead letters that nobody has taken into the catalog by then are deleted.',
    fix: `${ALTER} retention.ms={wantedMs}`,
    hits: onTopics(['deadLetters'], ({ topic }, { deadLetterRetentionMs: wantedMs }) => {
      const found = shorter(topic, wantedMs)
      return found === undefined ? undefined : { found, fill: { wantedMs } }
    }),
  },
  {
    id: 'kafka.retention-bytes',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry, dead-letter or confirmation topic that is bounded by size',
    why: 'In a flood of failures the oldest are deleted long before their time.',
    fix: `${ALTER} retention.bytes=-1`,
    hits: onTopics(ASIDE, ({ topic }) =>
      boundOf(topic, 'retention.bytes') === undefined
        ? undefined
        : setting(topic, 'retention.bytes'),
    ),
  },
  {
    id: 'kafka.source-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a source topic that is kept for less than a day',
    why: 'A consumer that pauses for a sick dependency, or is down, for longer than that never sees the records.',
    fix: `${ALTER} retention.ms=604800000`,
    hits: onTopics(['source'], ({ topic }) => shorter(topic, SOURCE_RETENTION_MS)),
  },
  {
    id: 'kafka.confirmation-retention',
    severity: 'advice',
    caps: 'A',
    looksFor: 'confirmations of replays that are kept for less than 14 days',
    why: 'What became of a replay is forgotten before a control plane that was away has read it.',
    fix: `${ALTER} retention.ms=${CONFIRMATION_RETENTION_MS}`,
    hits: onTopics(['confirmations'], ({ topic }) => shorter(topic, CONFIRMATION_RETENTION_MS)),
  },
  {
    id: 'kafka.message-size',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a retry or dead-letter topic that takes smaller records than the source',
    why: 'A large record that fails cannot be set aside: its copy is refused for ever, and its partition stands still.',
    fix: `${ALTER} max.message.bytes={wanted}`,
    hits: onTopics(ASIDE, ({ topic, source }) => {
      const wanted = source === undefined ? undefined : boundOf(source, 'max.message.bytes')
      const has = boundOf(topic, 'max.message.bytes')
      if (wanted === undefined || has === undefined || has >= wanted) return undefined
      return { found: `max.message.bytes=${has}, source ${wanted}`, fill: { wanted } }
    }),
  },
  {
    id: 'kafka.timestamp-type',
    severity: 'duplicates',
    caps: 'A',
    looksFor: "a retry topic that keeps the producer's times",
    why: 'A retry is due by the time it was stored. With the clock of another machine it is early, or late.',
    fix: `${ALTER} message.timestamp.type=LogAppendTime`,
    hits: onTopics(['retry'], ({ topic }) =>
      topic.config['message.timestamp.type'] === 'CreateTime'
        ? setting(topic, 'message.timestamp.type')
        : undefined,
    ),
  },
  {
    id: 'kafka.fewer-partitions',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a retry or dead-letter topic with fewer partitions than the source',
    why: 'A record keeps the number of its partition: copies from the higher ones are refused, and those partitions stand still.',
    fix: 'kafka-topics --alter --topic {subject} --partitions {wanted}',
    hits: onTopics(ASIDE, ({ topic, source }) => {
      const wanted = source?.partitions.length ?? 0
      if (topic.partitions.length >= wanted) return undefined
      return { found: `${topic.partitions.length} partitions, source ${wanted}`, fill: { wanted } }
    }),
  },
  {
    id: 'kafka.under-replicated',
    severity: 'delay',
    caps: 'A',
    looksFor: 'replicas that are not in sync',
    why: 'Fewer further losses are survived; below min.insync.replicas nothing can be written.',
    fix: 'start the brokers {missing:text}, or move their replicas: kafka-reassign-partitions',
    hits: onTopics(ALL, ({ topic: { partitions } }) => {
      const behind = partitions.filter(({ replicas, inSync }) => inSync.length < replicas.length)
      if (behind.length === 0) return undefined
      const gone = behind.flatMap(({ replicas, inSync }) =>
        replicas.filter((id) => !inSync.includes(id)),
      )
      const missing = [...new Set(gone)].sort((one, other) => one - other).join(', ')
      return {
        found: `${behind.length} of ${partitions.length} partitions, without ${missing}`,
        fill: { missing },
      }
    }),
  },
  {
    id: 'kafka.offline-partition',
    severity: 'delay',
    caps: 'A',
    looksFor: 'partitions without a leader',
    why: 'Nothing can be read from or written to them.',
    fix: 'start a broker that has a replica in sync; electing another leader loses records',
    hits: onTopics(ALL, ({ topic: { partitions } }) => {
      const offline = partitions.filter(({ leader }) => leader === undefined)
      return offline.length > 0 ? `${offline.length} of ${partitions.length} partitions` : undefined
    }),
  },
  {
    id: 'kafka.topic-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a source, retry, dead-letter or confirmation topic that is not there',
    why: 'What should be set aside there cannot be: it stays in hand, and the consumer stops.',
    fix: "start a consumer with topology: 'declare', or create what topologyOf lists",
    hits: (facts) => {
      if (facts.topics === undefined) return []
      const present = new Set(placedIn(facts).map(({ topic }) => topic.name))
      const needed = facts.sources.flatMap(neededTopics)
      return [...new Set(needed)]
        .filter((name) => !present.has(name))
        .map((name) => ({ subject: name, found: 'does not exist' }))
    },
  },
]

function shorter(
  topic: { readonly name: string; readonly config: Readonly<Record<string, string>> },
  wantedMs: number,
): string | undefined {
  const kept = Number(topic.config['retention.ms'] ?? -1)
  return kept >= 0 && kept < wantedMs ? `retention.ms=${kept}` : undefined
}
