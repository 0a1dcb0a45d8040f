import type { Mutant } from '../harness/mutant.ts'

const ASSIGNOR = 'packages/transports/kafka/src/protocol/assignor.ts'
const ASSIGNMENT = 'packages/transports/kafka/src/consume/assignment.ts'
const CLOCK = 'packages/transports/kafka/src/consume/broker-clock.ts'
const COMMIT = 'packages/transports/kafka/src/consume/committer.ts'
const SETTINGS = 'packages/transports/kafka/src/topic-settings.ts'
const FETCH = 'packages/transports/kafka/src/protocol/fetcher.ts'
const MEMBERSHIP = 'packages/transports/kafka/src/protocol/membership.ts'
const PARTITION = 'packages/transports/kafka/src/consume/partition.ts'
const RECEIVE = 'packages/transports/kafka/src/transport.ts'

export const MUTANTS: readonly Mutant[] = [
  [
    'measure delays with the clock of the consumer',
    'client-clock',
    'scenario',
    [
      CLOCK,
      'now + (now < this.#validUntil ? this.#measuredMs : differenceMs)',
      'now + 0 * differenceMs',
    ],
  ],
  [
    'never measure the time of the brokers',
    'client-clock',
    'scenario',
    [CLOCK, 'this.#validUntil = this.#nextMeasureAt', ''],
  ],
  [
    'commit the read position instead of the finished position',
    'kill-random',
    'committed early',
    [
      COMMIT,
      '{ topic, partition, deaths, identity }',
      '{ topic, partition, deaths, position, identity }',
    ],
    [COMMIT, 'offset: progress.mark', 'offset: position'],
  ],
  [
    'finish the original before the copy is acknowledged',
    'produce-errors',
    'lost',
    [
      RECEIVE,
      '    let result: Enactment = LOST\n',
      '    const isOurs = this.#consumption.finish(delivery)\n    let result: Enactment = LOST\n',
    ],
    [RECEIVE, 'if (!this.#consumption.finish(delivery)) return LOST', 'if (!isOurs) return LOST'],
  ],
  [
    'create topics that accept no larger records than the source',
    'large-records',
    'changed',
    [SETTINGS, 'limit + COPY_BYTES', 'limit'],
  ],
  [
    'continue with old progress after rejoining as another member',
    'stopped',
    'not fenced',
    [
      MEMBERSHIP,
      '    } else {\n      this.#options.onLost(leaving)\n    }\n',
      '    } else {\n      return\n    }\n',
    ],
  ],
  [
    'release partitions without committing finished records',
    'rebalance-storm',
    'duplicates over the bound',
    [ASSIGNMENT, '    await this.#commitBy(endsAt, leaving)\n', ''],
  ],
  [
    'assign only the first topics of the group',
    'two-topics',
    'not drained',
    [
      ASSIGNOR,
      'for (const topic of topicsOf(members)) {',
      'for (const topic of topicsOf(members).slice(0, 7)) {',
    ],
  ],
  [
    'never look for added partitions',
    'partitions-added',
    'not drained',
    [MEMBERSHIP, 'void this.#checkPartitions(), CHECK_MS', 'undefined, CHECK_MS'],
  ],
  [
    'do not notice that a topic was created again',
    'topic-recreated',
    'not drained',
    [
      FETCH,
      'topicId !== undefined && topics.has(topic) &&',
      'topicId === null && topics.has(topic) &&',
    ],
  ],
  [
    'deliver a record while another one of its key is in flight',
    'ordered',
    'out of order',
    [PARTITION, '      if (this.#isParked(record)) continue\n', ''],
  ],
  [
    'read copies of aborted transactions',
    'transactional',
    'copied twice',
    [FETCH, 'const READ_COMMITTED = 1', 'const READ_COMMITTED = 0'],
  ],
]
