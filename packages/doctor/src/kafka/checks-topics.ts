import type { Check } from '../finding.ts'
import type { KafkaFacts } from './facts.ts'
import { boundOf, onTopics, placedIn, replicasOf, type Role } from './look.ts'
import { neededTopics } from './names.ts'

const ALL: readonly Role[] = ['source', 'retry', 'deadLetters', 'confirmations']
/** The roles of all topics except the source. */
const WITHOUT_SOURCE: readonly Role[] = ['retry', 'deadLetters', 'confirmations']

/** 3 replicas: the minimum number with which writes continue when one is lost. */
const MIN_REPLICAS = 3
const MIN_IN_SYNC = 2
/** The longest tier plus 7 days: all consumers of a group can be down for that time before a waiting retry is deleted. */
const RETRY_RETENTION_MS = 608_400_000
/** 14 days, the retention that Redrive sets: a control plane that was stopped for longer gets the outcome from an operator. */
const CONFIRMATION_RETENTION_MS = 1_209_600_000
/** 1 day: an operator finds in the morning a consumer that paused in the evening. */
const SOURCE_RETENTION_MS = 86_400_000

/** 16 KiB: what a consumer adds to the limit of the source, for the headers of a copy. */
const COPY_BYTES = 16_384
const ALTER = 'kafka-configs --alter --entity-type topics --entity-name {subject} --add-config'

const setting = (topic: { readonly config: Readonly<Record<string, string>> }, name: string) =>
  `${name}=${topic.config[name] ?? 'not readable'}`

/** Checks whether the topics keep records for as long as they are needed. */
export const TOPIC_CHECKS: readonly Check<KafkaFacts>[] = [
  {
    id: 'kafka.replication-factor',
    severity: 'loss',
    caps: 'B',
    looksFor: 'fewer than three replicas',
    why: 'With one replica, the loss of a disk loses its records. With two, while a broker is down, writes stop or only a single copy exists.',
    fix: 'kafka-reassign-partitions --execute, with three brokers for each partition of {subject}',
    hits: onTopics(ALL, ({ topic }) =>
      replicasOf(topic) < MIN_REPLICAS ? `${replicasOf(topic)} of 3 replicas` : undefined,
    ),
  },
  {
    id: 'kafka.min-insync-replicas',
    severity: 'loss',
    caps: 'B',
    looksFor: 'min.insync.replicas below two',
    why: 'A record counts as stored when only the leader has it: when that broker is lost, the record is lost.',
    fix: `${ALTER} min.insync.replicas=2`,
    hits: onTopics(ALL, ({ topic }) => {
      const wanted = boundOf(topic, 'min.insync.replicas')
      // With fewer than two replicas, `kafka.replication-factor` reports the problem.
      return wanted !== undefined && wanted < MIN_IN_SYNC && replicasOf(topic) >= MIN_IN_SYNC
        ? setting(topic, 'min.insync.replicas')
        : undefined
    }),
  },
  {
    id: 'kafka.no-spare-replica',
    severity: 'delay',
    caps: 'A',
    looksFor: 'min.insync.replicas as high as the number of replicas',
    why: 'While one broker restarts, nothing can be written, and hand-offs wait.',
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
    why: 'A replica without some acknowledged records may become the leader. These records are then deleted on all brokers.',
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
    why: 'Of several failures with one key only the last is kept, and records without a key are rejected.',
    fix: `${ALTER} cleanup.policy=delete`,
    hits: onTopics(WITHOUT_SOURCE, ({ topic }) =>
      topic.config['cleanup.policy']?.includes('compact')
        ? setting(topic, 'cleanup.policy')
        : undefined,
    ),
  },
  {
    id: 'kafka.retry-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry topic with a retention below the longest delay plus a week',
    why: 'Records that wait for their retry are deleted before they are due, or while all consumers of the group are down.',
    fix: `${ALTER} retention.ms=${RETRY_RETENTION_MS}`,
    hits: onTopics(['retry'], ({ topic }) => tooShort(topic, RETRY_RETENTION_MS)),
  },
  {
    id: 'kafka.dead-letter-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a dead-letter topic with a shorter retention than dead letters need',
    why: 'Dead letters that the catalog has not drained by then are deleted.',
    fix: `${ALTER} retention.ms={wantedMs}`,
    hits: onTopics(['deadLetters'], ({ topic }, { deadLetterRetentionMs: wantedMs }) => {
      const found = tooShort(topic, wantedMs)
      return found === undefined ? undefined : { found, fill: { wantedMs } }
    }),
  },
  {
    id: 'kafka.retention-bytes',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry, dead-letter or confirmation topic with a size limit',
    why: 'After many failures, the oldest records are deleted before the end of their retention.',
    fix: `${ALTER} retention.bytes=-1`,
    hits: onTopics(WITHOUT_SOURCE, ({ topic }) =>
      boundOf(topic, 'retention.bytes') === undefined
        ? undefined
        : setting(topic, 'retention.bytes'),
    ),
  },
  {
    id: 'kafka.source-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a source topic with a retention below one day',
    why: 'A consumer that is down for longer, or pauses for longer because of an unhealthy dependency, never receives the records.',
    fix: `${ALTER} retention.ms=604800000`,
    hits: onTopics(['source'], ({ topic }) => tooShort(topic, SOURCE_RETENTION_MS)),
  },
  {
    id: 'kafka.confirmation-retention',
    severity: 'advice',
    caps: 'A',
    looksFor: 'replay confirmations with a retention below 14 days',
    why: 'The outcome of a replay is deleted before a control plane that was stopped has read it.',
    fix: `${ALTER} retention.ms=${CONFIRMATION_RETENTION_MS}`,
    hits: onTopics(['confirmations'], ({ topic }) => tooShort(topic, CONFIRMATION_RETENTION_MS)),
  },
  {
    id: 'kafka.message-size',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a retry or dead-letter topic with a smaller maximum record size than the source',
    why: 'The broker rejects the copy of a large record that fails. It is not retried, and its dead letter refers to the original instead of containing it.',
    fix: `${ALTER} max.message.bytes={wanted}`,
    hits: onTopics(['retry', 'deadLetters'], ({ topic, source }) => {
      const wanted = source === undefined ? undefined : boundOf(source, 'max.message.bytes')
      const has = boundOf(topic, 'max.message.bytes')
      if (wanted === undefined || has === undefined || has >= wanted) return undefined
      const fill = { wanted: wanted + COPY_BYTES }
      return { found: `max.message.bytes=${has}, source ${wanted}`, fill }
    }),
  },
  {
    id: 'kafka.timestamp-type',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a retry topic with the timestamps of the producer',
    why: 'The due time of a retry is computed from its timestamp. With the clock of another machine, it is early or late.',
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
    why: 'A record keeps its partition number: copies from higher partitions are rejected, and those partitions stall.',
    fix: 'kafka-topics --alter --topic {subject} --partitions {wanted}',
    hits: onTopics(WITHOUT_SOURCE, ({ topic, source }) => {
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
    why: 'The topic survives fewer further failures; below min.insync.replicas nothing can be written.',
    fix: 'start the brokers {missing:text}, or move their replicas: kafka-reassign-partitions',
    hits: onTopics(ALL, ({ topic: { partitions } }) => {
      const behind = partitions.filter(({ replicas, inSync }) => inSync.length < replicas.length)
      if (behind.length === 0) return undefined
      const missingIds = behind.flatMap(({ replicas, inSync }) =>
        replicas.filter((id) => !inSync.includes(id)),
      )
      const missing = [...new Set(missingIds)].sort((one, other) => one - other).join(', ')
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
    looksFor: 'a missing source, retry, dead-letter or confirmation topic',
    why: 'Failed records cannot be moved there: they stay in flight, and the consumer stops.',
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

function tooShort(
  topic: { readonly name: string; readonly config: Readonly<Record<string, string>> },
  wantedMs: number,
): string | undefined {
  const actualMs = Number(topic.config['retention.ms'] ?? -1)
  return actualMs >= 0 && actualMs < wantedMs ? `retention.ms=${actualMs}` : undefined
}
