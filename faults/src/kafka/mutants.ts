import type { Mutant } from '../hunt.ts'

const COMMIT = 'packages/transports/kafka/src/commit.ts'
const CONSUMING = 'packages/transports/kafka/src/consuming.ts'
const FETCH = 'packages/transports/kafka/src/fetch.ts'
const MEMBERSHIP = 'packages/transports/kafka/src/membership.ts'
const PARTITION = 'packages/transports/kafka/src/partition.ts'
const RECEIVE = 'packages/transports/kafka/src/receive.ts'

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'commit how far was read instead of how far was finished',
    edits: [
      {
        file: COMMIT,
        find: '{ topic, partition, deaths }',
        replace: '{ topic, partition, deaths, position }',
      },
      { file: COMMIT, find: 'offset: progress.mark', replace: 'offset: position' },
    ],
    scenario: 'kill-random',
    breaks: 'committed early',
  },
  {
    name: 'finish the original before the copy is acknowledged',
    edits: [
      {
        file: RECEIVE,
        find: '    try {\n      await this.#publisher.inTime(this.#sentOnce',
        replace:
          '    const isOurs = this.#consumption.finish(delivery)\n    try {\n      await this.#publisher.inTime(this.#sentOnce',
      },
      {
        file: RECEIVE,
        find: 'if (!this.#consumption.finish(delivery)) return LOST',
        replace: 'if (!isOurs) return LOST',
      },
    ],
    scenario: 'produce-errors',
    breaks: 'lost',
  },
  {
    name: 'go on with old progress after coming back as another member',
    edits: [
      {
        file: MEMBERSHIP,
        find: '    } else {\n      this.#parts.onLost(going)\n    }\n',
        replace: '    } else {\n      return\n    }\n',
      },
    ],
    scenario: 'stopped',
    breaks: 'not fenced',
  },
  {
    name: 'let go of partitions without committing what is finished',
    edits: [{ file: CONSUMING, find: '    await this.#commitBy(endsAt, going)\n', replace: '' }],
    scenario: 'rebalance-storm',
    breaks: 'duplicates over the bound',
  },
  {
    name: 'hand out a record although one of its key is in hand',
    edits: [
      {
        file: PARTITION,
        find: '      if (this.#isParked(record)) continue\n',
        replace: '',
      },
    ],
    scenario: 'ordered',
    breaks: 'out of order',
  },
  {
    name: 'read copies of transactions that were aborted',
    edits: [{ file: FETCH, find: 'const READ_COMMITTED = 1', replace: 'const READ_COMMITTED = 0' }],
    scenario: 'transactional',
    breaks: 'copied twice',
  },
]
