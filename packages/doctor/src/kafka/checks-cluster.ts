import type { Check } from '../finding.ts'
import type { KafkaFacts } from './facts.ts'
import { onBrokers, replicasOf } from './look.ts'

/** Three brokers are the fewest of which one may be lost while writes go on. */
const ENOUGH = 3
const ENOUGH_IN_SYNC = 2
/** A week, Kafka's own default: a group may be stopped over a holiday. */
const OFFSETS_RETENTION_MIN = 10_080
/** Of `Fetch`, since Kafka 3.5. */
const FETCH_OF_3_5 = 15
/** Of `EndTxn`, since Kafka 4.0: transactions have a number of their own. */
const END_TXN_OF_4_0 = 5

/** The cluster itself. */
export const CLUSTER_CHECKS: readonly Check<KafkaFacts>[] = [
  {
    id: 'kafka.few-brokers',
    severity: 'loss',
    caps: 'B',
    looksFor: 'fewer than three brokers',
    why: 'There is no place for three replicas: when the disk of a broker is lost, records are.',
    fix: 'add brokers until there are three, then give every topic three replicas',
    hits: ({ brokers }) =>
      brokers.length > 0 && brokers.length < ENOUGH
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
    why: '@redrive/kafka is not tested with it, and its requests may be refused.',
    fix: 'use Kafka 3.5 or later',
    hits: ({ apis }) =>
      apis?.['Fetch'] !== undefined && apis['Fetch'] < FETCH_OF_3_5
        ? [{ subject: 'version', found: `Fetch up to version ${apis['Fetch']}` }]
        : [],
  },
  {
    id: 'kafka.transactions-v1',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'Kafka before 4.0, for transactions',
    why: "A late repetition of the end of a transaction may end the next one (KAFKA-17754). It matters only with handOff: 'transactional'.",
    fix: "use Kafka 4.0 or later, or handOff: 'atLeastOnce' with an inbox",
    hits: ({ apis }) =>
      apis?.['EndTxn'] !== undefined && apis['EndTxn'] < END_TXN_OF_4_0
        ? [{ subject: 'version', found: `EndTxn up to version ${apis['EndTxn']}` }]
        : [],
  },
  {
    id: 'kafka.auto-create-topics',
    severity: 'advice',
    caps: 'A',
    looksFor: 'topics that are created by whoever asks for them',
    why: 'A misspelt or deleted retry topic comes into being with the default settings: other partitions, another retention, perhaps one replica.',
    fix: 'set auto.create.topics.enable=false in server.properties of every broker, and restart one after the other',
    hits: onBrokers('auto.create.topics.enable', (value) => value === 'true'),
  },
  {
    id: 'kafka.offsets-retention',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'committed offsets that are forgotten within a week',
    why: 'A group that was stopped for longer begins anew: it handles everything again, or with from: latest skips what it missed.',
    fix: `set offsets.retention.minutes=${OFFSETS_RETENTION_MIN} or more in server.properties of every broker, and restart one after the other`,
    hits: onBrokers('offsets.retention.minutes', (value) => Number(value) < OFFSETS_RETENTION_MIN),
  },
  {
    id: 'kafka.offsets-replication',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'fewer than three replicas of __consumer_offsets',
    why: 'With the loss of a broker the committed offsets of some groups are lost: everything is handled again.',
    fix: 'kafka-reassign-partitions --execute, with three brokers for each partition of __consumer_offsets',
    hits: ({ topics = [] }) =>
      topics
        .filter((topic) => topic.name === '__consumer_offsets' && replicasOf(topic) < ENOUGH)
        .map((topic) => ({ subject: topic.name, found: `${replicasOf(topic)} of 3 replicas` })),
  },
  {
    id: 'kafka.transaction-log-replication',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'fewer than three replicas of the log of transactions',
    why: "With the loss of a broker it is not known how transactions ended: copy and original may both remain. It matters only with handOff: 'transactional'.",
    fix: 'set transaction.state.log.replication.factor=3 before the topic is made; afterwards kafka-reassign-partitions for __transaction_state',
    hits: onBrokers('transaction.state.log.replication.factor', (value) => Number(value) < ENOUGH),
  },
  {
    id: 'kafka.transaction-log-min-isr',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a log of transactions that counts as written on one broker',
    why: "The end of a transaction may be lost with one broker. It matters only with handOff: 'transactional'.",
    fix: 'set transaction.state.log.min.isr=2 in server.properties; kafka-configs --alter --entity-type topics --entity-name __transaction_state --add-config min.insync.replicas=2',
    hits: onBrokers('transaction.state.log.min.isr', (value) => Number(value) < ENOUGH_IN_SYNC),
  },
  {
    id: 'kafka.no-committed-offset',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a group that has committed nothing on its topic',
    why: 'It never consumed, or its offsets are forgotten: where it begins is decided by the option from.',
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
