import type { Check } from '../finding.ts'
import type { KafkaFacts } from './facts.ts'
import { apiBelow, onBrokers, replicasOf } from './look.ts'

/** 3 brokers: the minimum number with which writes continue when one is lost. */
const MIN_BROKERS = 3
const MIN_IN_SYNC = 2
/** 7 days in minutes, the default of Kafka: a group may be stopped over a holiday. */
const MIN_OFFSETS_RETENTION = 10_080
/** Version of `Fetch` since Kafka 3.5. */
const FETCH_OF_3_5 = 15
/** Version of `EndTxn` since Kafka 4.0, where each transaction has its own number. */
const END_TXN_OF_4_0 = 5

/** Checks of the cluster. */
export const CLUSTER_CHECKS: readonly Check<KafkaFacts>[] = [
  {
    id: 'kafka.few-brokers',
    severity: 'loss',
    caps: 'B',
    looksFor: 'fewer than three brokers',
    why: 'Three replicas are not possible: when the disk of a broker is lost, its records are lost.',
    fix: 'add brokers until there are three, then give every topic three replicas',
    hits: ({ brokers }) =>
      brokers.length > 0 && brokers.length < MIN_BROKERS
        ? [
            {
              subject: 'cluster',
              found: `${brokers.length} broker${brokers.length === 1 ? '' : 's'}`,
            },
          ]
        : [],
  },
  {
    id: 'kafka.version',
    severity: 'delay',
    caps: 'A',
    looksFor: 'Kafka before 3.5',
    why: '@redrive/kafka is not tested with this version, which may reject its requests.',
    fix: 'use Kafka 3.5 or later',
    hits: apiBelow('Fetch', FETCH_OF_3_5),
  },
  {
    id: 'kafka.transactions-v1',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'Kafka before 4.0, for transactions',
    why: "A late repeated request to end a transaction may end the next one (KAFKA-17754). This matters only with handOff: 'transactional'.",
    fix: "use Kafka 4.0 or later, or handOff: 'atLeastOnce' with an inbox",
    hits: apiBelow('EndTxn', END_TXN_OF_4_0),
  },
  {
    id: 'kafka.auto-create-topics',
    severity: 'advice',
    caps: 'A',
    looksFor: 'automatic creation of topics',
    why: 'A misspelt or deleted retry topic is created with the default settings: other partitions, another retention, perhaps one replica.',
    fix: 'set auto.create.topics.enable=false in server.properties of every broker, and restart one after the other',
    hits: onBrokers('auto.create.topics.enable', (value) => value === 'true'),
  },
  {
    id: 'kafka.offsets-retention',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'committed offsets that are deleted within a week',
    why: 'A group that was stopped for longer starts again: it handles everything again or, with from: latest, skips the records it missed.',
    fix: `set offsets.retention.minutes=${MIN_OFFSETS_RETENTION} or more in server.properties of every broker, and restart one after the other`,
    hits: onBrokers('offsets.retention.minutes', (value) => Number(value) < MIN_OFFSETS_RETENTION),
  },
  {
    id: 'kafka.offsets-replication',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'fewer than three replicas of __consumer_offsets',
    why: 'When a broker is lost, the committed offsets of some groups are lost: they handle everything again.',
    fix: 'kafka-reassign-partitions --execute, with three brokers for each partition of __consumer_offsets',
    hits: ({ topics = [] }) =>
      topics
        .filter((topic) => topic.name === '__consumer_offsets' && replicasOf(topic) < MIN_BROKERS)
        .map((topic) => ({ subject: topic.name, found: `${replicasOf(topic)} of 3 replicas` })),
  },
  {
    id: 'kafka.transaction-log-replication',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'fewer than three replicas of the transaction log',
    why: "When a broker is lost, the outcome of transactions is unknown: copy and original may both remain. This matters only with handOff: 'transactional'.",
    fix: 'set transaction.state.log.replication.factor=3 before the topic is created; if it exists, use kafka-reassign-partitions for __transaction_state',
    hits: onBrokers(
      'transaction.state.log.replication.factor',
      (value) => Number(value) < MIN_BROKERS,
    ),
  },
  {
    id: 'kafka.transaction-log-min-isr',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a transaction log that counts as written when one broker has it',
    why: "The end of a transaction may be lost with one broker. This matters only with handOff: 'transactional'.",
    fix: 'set transaction.state.log.min.isr=2 in server.properties; kafka-configs --alter --entity-type topics --entity-name __transaction_state --add-config min.insync.replicas=2',
    hits: onBrokers('transaction.state.log.min.isr', (value) => Number(value) < MIN_IN_SYNC),
  },
  {
    id: 'kafka.no-committed-offset',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a group that has committed nothing on its topic',
    why: 'It never consumed, or its offsets were deleted: the option from decides where it starts.',
    fix: 'start the consumer once; check that the name of the group is right',
    hits: ({ sources }) =>
      sources
        .filter(({ committed }) => committed === 0)
        .map(({ topic, group }) => ({
          subject: `group ${group}`,
          found: `nothing committed on ${topic}`,
        })),
  },
]
